#include "server/security/key_set.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/security/key_line.h"

namespace longview::server {
namespace {

constexpr std::string_view kSpaces = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

absl::Status BadLine(int line, std::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", std::string(problem)));
}

// A limit of a name and the line that gave it.
template <typename Number>
struct Given {
  std::optional<Number> value;
  int line = 0;

  // The earlier line, if that one said something else; else 0.
  int Merge(std::optional<Number> more, int at) {
    if (!more) return 0;
    if (value) return *value == *more ? 0 : line;
    value = more;
    line = at;
    return 0;
  }
};

struct GivenLimits {
  Given<int> max_inflight;
  Given<double> tokens_per_second;
  Given<double> weight;

  absl::Status Merge(const KeyLine& more, int at) {
    const std::pair<const char*, int> merged[] = {
        {"max_inflight", max_inflight.Merge(more.max_inflight, at)},
        {"tokens_per_second", tokens_per_second.Merge(more.tokens_per_second, at)},
        {"weight", weight.Merge(more.weight, at)}};
    for (const auto& [option, other] : merged) {
      if (other == 0) continue;
      return BadLine(at, absl::StrCat(option, ": another value than in line ", other,
                                      ", which has the same name"));
    }
    return absl::OkStatus();
  }

  ClientLimits Limits() const {
    ClientLimits limits;
    limits.max_inflight = max_inflight.value.value_or(limits.max_inflight);
    limits.tokens_per_second = tokens_per_second.value.value_or(limits.tokens_per_second);
    limits.weight = weight.value.value_or(limits.weight);
    return limits;
  }
};

}  // namespace

absl::StatusOr<KeySet> KeySet::Parse(std::string_view text) {
  KeySet keys;
  std::map<std::string, GivenLimits> limits;
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view entry = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (entry.empty() || entry.starts_with('#')) continue;
    const absl::StatusOr<KeyLine> read = ParseKeyLine(entry);
    if (!read.ok()) return BadLine(line, std::string(read.status().message()));
    const Digest digest = Sha256(read->key);
    for (const Entry& known : keys.entries_) {
      if (!SameDigest(known.digest, digest)) continue;
      return BadLine(line, absl::StrCat("the same key as in line ", known.line));
    }
    const std::string name(read->name);
    RETURN_IF_ERROR(limits[name].Merge(*read, line));
    keys.entries_.push_back({{name, read->roles}, digest, line});
    keys.names_metrics_ = keys.names_metrics_ || read->names_metrics;
  }
  if (keys.entries_.empty()) {
    return absl::InvalidArgumentError("it holds no key; lines are name:key");
  }
  for (const auto& [name, given] : limits) keys.limits_[name] = given.Limits();
  return keys;
}

const KeyHolder* KeySet::Find(std::string_view key) const {
  const Digest digest = Sha256(key);
  const KeyHolder* found = nullptr;
  for (const Entry& entry : entries_) {
    if (SameDigest(entry.digest, digest)) found = &entry.holder;
  }
  return found;
}

}  // namespace longview::server
