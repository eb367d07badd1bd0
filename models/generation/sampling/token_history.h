// The tokens a sequence consists of so far, which ids occur in it, and how often in what was
// generated. Copied when a sequence forks. Belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace longview::models {

class TokenHistory {
 public:
  // `track_distinct`, `track_counts`: distinct(), counts() are wanted. REQUIRES: all ids ever given
  // are in [0, vocab).
  TokenHistory(std::vector<int32_t> prompt, int vocab, bool track_distinct,
               bool track_counts = false)
      : ids_(std::move(prompt)), prompt_(static_cast<int>(ids_.size())) {
    if (track_counts) places_.assign(static_cast<size_t>(vocab), -1);
    if (!track_distinct) return;
    seen_.resize(static_cast<size_t>(vocab));
    for (const int32_t id : ids_) See(id);
  }

  void Append(int32_t id) {
    ids_.push_back(id);
    if (!seen_.empty()) See(id);
    if (!places_.empty()) Count(id);
  }

  std::span<const int32_t> ids() const { return ids_; }
  std::span<const int32_t> generated() const { return ids().subspan(static_cast<size_t>(prompt_)); }
  int tokens() const { return static_cast<int>(ids_.size()); }
  int prompt() const { return prompt_; }
  // Every id once, in the order of their first occurrence; empty if not tracked.
  std::span<const int32_t> distinct() const { return distinct_; }
  // Every generated id once, with how often it was; empty if not tracked.
  struct IdCount {
    int32_t id = 0;
    int count = 0;
  };
  std::span<const IdCount> counts() const { return counts_; }

 private:
  void See(int32_t id) {
    if (seen_[static_cast<size_t>(id)]) return;
    seen_[static_cast<size_t>(id)] = true;
    distinct_.push_back(id);
  }

  void Count(int32_t id) {
    int32_t& place = places_[static_cast<size_t>(id)];
    if (place < 0) {
      place = static_cast<int32_t>(counts_.size());
      counts_.push_back({id, 0});
    }
    ++counts_[static_cast<size_t>(place)].count;
  }

  std::vector<int32_t> ids_;
  int prompt_;
  std::vector<bool> seen_;
  std::vector<int32_t> distinct_;
  std::vector<int32_t> places_;  // In counts_, by id; -1 = not there.
  std::vector<IdCount> counts_;
};

}  // namespace longview::models
