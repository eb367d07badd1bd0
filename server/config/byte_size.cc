#include "server/config/byte_size.h"

#include <charconv>
#include <limits>

#include "absl/strings/str_cat.h"

namespace longview::server {
namespace {

absl::Status Invalid(std::string_view text, std::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(text), "' is not ", std::string(expected)));
}

struct Suffix {
  std::string_view name;
  int shift;
};
constexpr Suffix kSuffixes[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return Invalid(text, "a byte count such as 67108864 or 64MiB");
  for (const Suffix& suffix : kSuffixes) {
    if (std::string_view(rest, end - rest) != suffix.name) continue;
    if (number > std::numeric_limits<uint64_t>::max() >> suffix.shift) {
      return Invalid(text, "below 2^64 bytes");
    }
    return number << suffix.shift;
  }
  return Invalid(text, "a byte count: the suffix must be KiB, MiB, GiB or TiB");
}

absl::StatusOr<uint64_t> ParseBytesOf(std::string_view text, uint64_t whole) {
  if (!text.ends_with('%')) return ParseBytes(text);
  int percent = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || rest != end || percent < 1 || percent > 100) {
    return Invalid(text, "a percentage from 1% to 100%");
  }
  return static_cast<uint64_t>(static_cast<double>(whole) / 100 * percent);
}

}  // namespace longview::server
