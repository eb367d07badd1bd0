#include "server/security/key_line.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/status_macros.h"

namespace longview::server {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxKeyBytes = 512;
constexpr double kMostTokens = 1e9;
constexpr double kLeastWeight = 0.001, kMostWeight = 1000;
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         text.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

bool IsKey(std::string_view text) {
  return !text.empty() && text.size() <= kMaxKeyBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

absl::Status Bad(std::string_view problem) {
  return absl::InvalidArgumentError(std::string(problem));
}

// Returns the text before the first separator; `text` goes on behind it.
std::string_view Cut(std::string_view& text, std::string_view separators) {
  const size_t end = std::min(text.find_first_of(separators), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

absl::Status ReadRoles(std::string_view value, Roles& roles) {
  roles = Roles();
  bool more = true;
  while (more) {
    more = value.find(',') != std::string_view::npos;
    const std::optional<Role> role = ParseRole(Cut(value, ","));
    if (!role) return Bad("role: expected infer, control and metrics, separated by commas");
    roles.Add(*role);
  }
  return absl::OkStatus();
}

std::optional<double> ReadNumber(std::string_view text, double least, double most) {
  double value = 0;
  if (!absl::SimpleAtod({text.data(), text.size()}, &value)) return std::nullopt;
  if (!(value >= least && value <= most)) return std::nullopt;
  return value;
}

absl::Status ReadOption(std::string_view name, std::string_view value, KeyLine& line) {
  if (name == "role") {
    const absl::Status read = ReadRoles(value, line.roles);
    line.names_metrics = read.ok() && line.roles.Has(Role::kMetrics);
    return read;
  }
  if (name == "max_inflight") {
    int number = 0;
    if (!absl::SimpleAtoi(absl::string_view(value.data(), value.size()), &number) || number < 1) {
      return Bad("max_inflight: expected a whole number from 1");
    }
    line.max_inflight = number;
    return absl::OkStatus();
  }
  if (name == "tokens_per_second") {
    line.tokens_per_second = ReadNumber(value, 1e-3, kMostTokens);
    return line.tokens_per_second ? absl::OkStatus()
                                  : Bad("tokens_per_second: expected a number from 0.001 to 1e9");
  }
  if (name == "weight") {
    line.weight = ReadNumber(value, kLeastWeight, kMostWeight);
    return line.weight ? absl::OkStatus() : Bad("weight: expected a number from 0.001 to 1000");
  }
  return Bad("an unknown option; there are role, max_inflight, tokens_per_second, weight");
}

}  // namespace

absl::StatusOr<KeyLine> ParseKeyLine(std::string_view text) {
  KeyLine line;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Bad("expected name:key");
  line.name = Cut(text, ":");
  line.key = Cut(text, kBlanks);
  if (!IsName(line.name)) return Bad("the name must match [A-Za-z0-9._-]{1,64}");
  if (!IsKey(line.key)) {
    return Bad(absl::StrCat("the key must be 1 to ", kMaxKeyBytes, " visible ASCII characters"));
  }
  while (!text.empty()) {
    std::string_view option = Cut(text, kBlanks);
    if (option.empty()) continue;
    if (option.find('=') == std::string_view::npos) {
      return Bad("expected option=value behind the key");
    }
    const std::string_view name = Cut(option, "=");
    RETURN_IF_ERROR(ReadOption(name, option, line));
  }
  return line;
}

}  // namespace longview::server
