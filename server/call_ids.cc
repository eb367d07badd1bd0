#include "server/call_ids.h"

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

// version "-" trace id "-" parent id "-" flags
constexpr size_t kTraceAt = 3, kTraceDigits = 32;
constexpr size_t kParentAt = 36, kParentDigits = 16;
constexpr size_t kFlagsAt = 53, kFlagsDigits = 2;
constexpr size_t kLength = 55;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsZero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

std::string RequestIdOr(std::string_view given) {
  if (Usable(given)) return std::string(given);
  thread_local absl::InsecureBitGen random;
  return absl::StrFormat("%016x%016x", absl::Uniform<uint64_t>(random),
                         absl::Uniform<uint64_t>(random));
}

TraceContext ParseTraceparent(std::string_view header) {
  if (header.size() < kLength) return {};
  const std::string_view version = header.substr(0, 2);
  const std::string_view trace = header.substr(kTraceAt, kTraceDigits);
  const std::string_view parent = header.substr(kParentAt, kParentDigits);
  const bool dashes = header[2] == '-' && header[kTraceAt + kTraceDigits] == '-' &&
                      header[kParentAt + kParentDigits] == '-';
  const bool hex = IsHex(version) && IsHex(trace) && IsHex(parent) &&
                   IsHex(header.substr(kFlagsAt, kFlagsDigits));
  // Version 00 ends here; later ones may go on behind another dash, ff is forbidden.
  const bool ends = header.size() == kLength || (version != "00" && header[kLength] == '-');
  if (!dashes || !hex || !ends || version == "ff" || IsZero(trace) || IsZero(parent)) return {};
  // The lowest bit of the flags; the others say nothing here.
  const char low = header[kFlagsAt + 1];
  const bool sampled = (low <= '9' ? low - '0' : low - 'a' + 10) & 1;
  return {std::string(trace), std::string(parent), sampled};
}

}  // namespace longview::server
