// The keys of a file: lines `name:key`, comments with '#'.
//
//   # One client may have two keys, so that it can change over from one to the other.
//   search:Jc0pXf5uQ2
//   search:8sVnB1rRzD
//   reports:kT7eWq0yLm
//
// A value: immutable once parsed, so thread-safe. Keeps digests, never the keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/security/digest.h"

namespace longview::server {

class KeySet {
 public:
  // Names match [A-Za-z0-9._-]{1,64}, keys are 1 to 512 visible ASCII characters, each under one
  // name; blanks around a line do not count. At least one key. INVALID_ARGUMENT names the line and
  // never repeats what it holds.
  static absl::StatusOr<KeySet> Parse(std::string_view text);

  // The name of the key; nullptr for an unknown one. Compares with every key, each in constant
  // time: how long it takes tells nothing about the keys.
  const std::string* Find(std::string_view key) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string name;
    Digest digest;
    int line;
  };
  std::vector<Entry> entries_;
};

}  // namespace longview::server
