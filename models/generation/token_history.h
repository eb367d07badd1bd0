// The tokens a sequence consists of so far, and which ids occur in it. Copied when a sequence
// forks. Belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace longview::models {

class TokenHistory {
 public:
  // `track_distinct`: distinct() is wanted. REQUIRES: all ids ever given are in [0, vocab).
  TokenHistory(std::vector<int32_t> prompt, int vocab, bool track_distinct)
      : ids_(std::move(prompt)), prompt_(static_cast<int>(ids_.size())) {
    if (!track_distinct) return;
    seen_.resize(static_cast<size_t>(vocab));
    for (const int32_t id : ids_) See(id);
  }

  void Append(int32_t id) {
    ids_.push_back(id);
    if (!seen_.empty()) See(id);
  }

  std::span<const int32_t> ids() const { return ids_; }
  std::span<const int32_t> generated() const { return ids().subspan(static_cast<size_t>(prompt_)); }
  int tokens() const { return static_cast<int>(ids_.size()); }
  int prompt() const { return prompt_; }
  // Every id once, in the order of their first occurrence; empty if not tracked.
  std::span<const int32_t> distinct() const { return distinct_; }

 private:
  void See(int32_t id) {
    if (seen_[static_cast<size_t>(id)]) return;
    seen_[static_cast<size_t>(id)] = true;
    distinct_.push_back(id);
  }

  std::vector<int32_t> ids_;
  int prompt_;
  std::vector<bool> seen_;
  std::vector<int32_t> distinct_;
};

}  // namespace longview::models
