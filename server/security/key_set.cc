#include "server/security/key_set.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace longview::server {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxKeyBytes = 512;
constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         text.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

bool IsKey(std::string_view text) {
  return !text.empty() && text.size() <= kMaxKeyBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

absl::Status BadLine(int line, std::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", std::string(problem)));
}

}  // namespace

absl::StatusOr<KeySet> KeySet::Parse(std::string_view text) {
  KeySet keys;
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view entry = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (entry.empty() || entry.starts_with('#')) continue;
    const size_t colon = entry.find(':');
    if (colon == std::string_view::npos) return BadLine(line, "expected name:key");
    const std::string_view name = entry.substr(0, colon);
    const std::string_view key = entry.substr(colon + 1);
    if (!IsName(name)) return BadLine(line, "the name must match [A-Za-z0-9._-]{1,64}");
    if (!IsKey(key)) {
      return BadLine(
          line, absl::StrCat("the key must be 1 to ", kMaxKeyBytes, " visible ASCII characters"));
    }
    const Digest digest = Sha256(key);
    for (const Entry& known : keys.entries_) {
      if (!SameDigest(known.digest, digest)) continue;
      return BadLine(line, absl::StrCat("the same key as in line ", known.line));
    }
    keys.entries_.push_back({std::string(name), digest, line});
  }
  if (keys.entries_.empty()) {
    return absl::InvalidArgumentError("it holds no key; lines are name:key");
  }
  return keys;
}

const std::string* KeySet::Find(std::string_view key) const {
  const Digest digest = Sha256(key);
  const std::string* found = nullptr;
  for (const Entry& entry : entries_) {
    if (SameDigest(entry.digest, digest)) found = &entry.name;
  }
  return found;
}

}  // namespace longview::server
