#include "server/app/process_settings.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>

namespace longview::server {

namespace {

// Some hundreds of microseconds: the time between two parallel loops of a layer, with the wake-up
// of a sleeping thread that it saves, but far from the library's milliseconds.
constexpr char kSpinCount[] = "20000";

}  // namespace

void LetIdleThreadsSleep(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // Not by the link in /proc itself: the process would be called "exe".
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  // GNU OpenMP reads the variable before main: only a new start of the program makes it count.
  if (error || setenv("GOMP_SPINCOUNT", kSpinCount, 1) != 0) return;
  execv(program.c_str(), argv);
}

// glibc's default is eight arenas a core, each of which keeps what its threads freed.
void LimitMallocArenas() {
  if (std::getenv("MALLOC_ARENA_MAX") != nullptr) return;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  mallopt(M_ARENA_MAX, std::max(2, cores));
}

}  // namespace longview::server
