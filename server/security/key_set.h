// The keys of a file: lines `name:key option=value ...`, comments with '#'.
//
//   # One client may have two keys, so that it can change over from one to the other.
//   search:Jc0pXf5uQ2 max_inflight=32 tokens_per_second=20000 weight=2
//   search:8sVnB1rRzD
//   reports:kT7eWq0yLm role=infer
//   deploys:Zq9rXc3vBt role=control,metrics
//
// `role` is the key's: infer, control and metrics, separated by commas; without it, all of them.
// If a line names metrics, /metrics asks for a key with that role; else it is open.
// `max_inflight`, `tokens_per_second` and `weight` are the name's, and stand in any one of its
// lines, or equally in several (client_quota.h).
//
// A value: immutable once parsed, so thread-safe. Keeps digests, never the keys.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/security/client_quota.h"
#include "server/security/digest.h"
#include "server/security/roles.h"

namespace longview::server {

struct KeyHolder {
  std::string name;
  Roles roles = Roles::All();
};

class KeySet {
 public:
  // Names match [A-Za-z0-9._-]{1,64}, keys are 1 to 512 visible ASCII characters, each under one
  // name; blanks around a line do not count. At least one key. INVALID_ARGUMENT names the line and
  // the option, and never repeats what they hold.
  static absl::StatusOr<KeySet> Parse(std::string_view text);

  // The key's holder; nullptr for an unknown key. Compares with every key, each in constant time,
  // so its duration tells nothing about the keys.
  const KeyHolder* Find(std::string_view key) const;

  // Limits by holder's name.
  const std::map<std::string, ClientLimits>& limits() const { return limits_; }

  size_t size() const { return entries_.size(); }

  // Whether a line names the role metrics: the operator gave a scraper a key of its own.
  bool names_metrics() const { return names_metrics_; }

 private:
  struct Entry {
    KeyHolder holder;
    Digest digest;
    int line;
  };
  std::vector<Entry> entries_;
  std::map<std::string, ClientLimits> limits_;
  bool names_metrics_ = false;
};

}  // namespace longview::server
