#include "server/request_id.h"

#include <algorithm>
#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/str_format.h"

namespace longview::server {
namespace {

constexpr size_t kMaxLength = 128;

bool Usable(std::string_view id) {
  return !id.empty() && id.size() <= kMaxLength &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

}  // namespace

std::string RequestIdOr(std::string_view given) {
  if (Usable(given)) return std::string(given);
  thread_local absl::InsecureBitGen random;
  return absl::StrFormat("%016x%016x", absl::Uniform<uint64_t>(random),
                         absl::Uniform<uint64_t>(random));
}

}  // namespace longview::server
