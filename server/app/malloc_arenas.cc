#include "server/app/malloc_arenas.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace longview::server {

void LimitMallocArenas() {
  if (std::getenv("MALLOC_ARENA_MAX") != nullptr) return;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  mallopt(M_ARENA_MAX, std::max(2, cores));
}

}  // namespace longview::server
