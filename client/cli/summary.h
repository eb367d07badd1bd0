// The line below the answers of many inputs.
#pragma once

#include <cstdint>
#include <string>

#include "client/cli/over_inputs.h"

namespace longview::client {

// Not thread-safe.
class Summary {
 public:
  void Add(const Outcome& outcome);

  // "40 inputs, 81,920 tokens in 2.5 s (32,768 a second); 3 failed: 2 are too long (--truncate cuts
  // them), 1 is not UTF-8 (--lossy replaces what is invalid)"; without tokens where no answer
  // counted any.
  std::string Text(double seconds) const;

 private:
  int64_t inputs_ = 0, tokens_ = 0, cut_ = 0;
  int64_t failed_ = 0, too_long_ = 0, not_utf8_ = 0;
};

}  // namespace longview::client
