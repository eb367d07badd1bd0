// A cache of a small shape with sequences that read, fork and cache their prefixes.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tests/kernels/cache/content.h"

namespace longview::kernels::testing {

inline CacheShape SmallShape(int window, int segment, int rank, DType dtype = DType::kFloat32) {
  CacheShape shape;
  shape.layers = 2;
  shape.kv_heads = 2;
  shape.Dk = 16;
  shape.Dv = 8;
  shape.dtype = dtype;
  shape.strips = {WindowStrip(window)};
  if (rank > 0) shape.strips.push_back(PageStrip(segment, rank));
  shape.pool_columns = 2 * rank;
  shape.pool_widths = {16, 8};
  return shape;
}

class Driver {
 public:
  Driver(const CacheShape& shape, CacheBudget* budget, ProjectionCache::Options options = {})
      : budget_(budget) {
    if (options.step_tokens == 0) options.step_tokens = 256;
    if (options.step_sequences == 0) options.step_sequences = 2;
    // Blocks of a device's form lie where the host cannot read them.
    const bool apart = shape.form == BlockForm::kRows;
    if (apart) options.memory = &apart_;
    cache_ = ProjectionCache::Create(shape, options, budget);
    writer_ = std::make_unique<Writer>(cache_.get(), apart ? &apart_ : nullptr);
  }

  ProjectionCache* cache() { return cache_.get(); }
  const CacheShape& shape() const { return cache_->shape(); }
  const CacheBudget& budget() const { return *budget_; }

  CacheSequence New() { return CacheSequence(cache_.get()); }

  // Appends to several sequences in one step.
  struct Feed {
    CacheSequence* sequence;
    std::vector<int32_t> ids;
    CacheStep::Group group;
  };
  [[nodiscard]] bool Step(const std::vector<Feed>& feeds) {
    CacheStep step(cache_.get());
    for (const CacheStep::Group group :
         {CacheStep::kDecode, CacheStep::kResume, CacheStep::kPrefill}) {
      for (const Feed& feed : feeds) {
        if (feed.group != group) continue;
        before_[group].push_back(feed.sequence->tokens());
        sequences_[group].push_back(feed.sequence);
        if (!step.Append(group, feed.sequence, feed.ids)) {
          Forget();
          return false;
        }
      }
    }
    for (const CacheStep::Group group :
         {CacheStep::kPrefill, CacheStep::kResume, CacheStep::kDecode}) {
      writer_->Write(step, group, sequences_[group], before_[group]);
    }
    Forget();
    return true;
  }

  void Decode(CacheSequence* sequence, std::span<const int32_t> ids) {
    for (int32_t id : ids) ASSERT_TRUE(Step({{sequence, {id}, CacheStep::kDecode}}));
  }
  // From a multiple of 64 tokens, in chunks.
  void Prefill(CacheSequence* sequence, std::span<const int32_t> ids, int chunk = 256) {
    for (size_t at = 0; at < ids.size(); at += chunk) {
      const auto part = ids.subspan(at, std::min<size_t>(chunk, ids.size() - at));
      ASSERT_TRUE(Step({{sequence, {part.begin(), part.end()}, CacheStep::kPrefill}}));
    }
  }

  // Prefill from anywhere: to the end of the open block first, as a question behind a document.
  void Continue(CacheSequence* sequence, std::span<const int32_t> ids) {
    const auto open = static_cast<size_t>(-sequence->tokens() & (kBlockSlots - 1));
    const auto head = ids.first(std::min(open, ids.size()));
    if (!head.empty()) {
      ASSERT_TRUE(Step({{sequence, {head.begin(), head.end()}, CacheStep::kResume}}));
    }
    Prefill(sequence, ids.subspan(head.size()));
  }

  void Check(const CacheSequence& sequence, bool found = false) const {
    writer_->Check(sequence, found);
  }

 private:
  void Forget() {
    for (int group = 0; group < kGroups; ++group) {
      before_[group].clear();
      sequences_[group].clear();
    }
  }

  static constexpr int kGroups = 3;

  CacheBudget* budget_;
  ApartMemory apart_;
  std::unique_ptr<ProjectionCache> cache_;
  std::unique_ptr<Writer> writer_;
  std::vector<int64_t> before_[kGroups];
  std::vector<const CacheSequence*> sequences_[kGroups];
};

// Ids that differ at every place and between seeds.
inline std::vector<int32_t> Text(int tokens, int seed = 0) {
  std::vector<int32_t> ids(tokens);
  for (int i = 0; i < tokens; ++i) ids[i] = static_cast<int32_t>(Mix(seed * 1000003 + i) % 50000);
  return ids;
}

}  // namespace longview::kernels::testing
