#include "models/transformer_ls/device_lists.h"

#include <algorithm>
#include <vector>

#include "kernels/base/check.h"
#include "kernels/cuda/token/cache_rows.h"
#include "models/transformer_ls/cache_layout.h"

namespace longview::models {
namespace {

using kernels::CacheStep;
using kernels::cuda::CacheRowPlace;
using kernels::cuda::PoolRun;

class Stager {
 public:
  Stager(const LsLmConfig& config, const LsPassLayout& layout,
         const kernels::ProjectionCache* cache, const CacheStep* step, std::byte* states,
         StagedLists& lists)
      : shape_(LsCacheShape(config, kernels::DType::kFloat32)),
        config_(config),
        layout_(layout),
        cache_(cache),
        step_(step),
        states_(states),
        lists_(lists) {}

  DeviceLsLists Stage() {
    DeviceLsLists staged;
    staged.ids = Ids();
    for (size_t g = 0; g < staged.groups.size(); ++g) staged.groups[g] = Group(layout_.groups[g]);
    staged.late_rows = PageRows(kLateStrip);
    if (config_.schedule == LsSchedule::kBlocks) staged.early_rows = PageRows(kEarlyStrip);
    staged.closing = Pieces(true);
    staged.open = Pieces(false);
    staged.wanted = Wanted();
    return staged;
  }

 private:
  const int32_t* Ids() {
    std::vector<int32_t> ids;
    for (const TokenRun& run : layout_.runs) ids.insert(ids.end(), run.ids.begin(), run.ids.end());
    return lists_.Add(ids);
  }

  const int32_t* Wanted() {
    std::vector<int32_t> rows;
    for (const TokenRun& run : layout_.runs) {
      for (int64_t row = run.end() - run.wanted; row < run.end(); ++row) {
        rows.push_back(static_cast<int32_t>(row));
      }
    }
    return lists_.Add(rows);
  }

  std::span<const TokenRun> RunsOf(const RunGroup& group) const {
    return std::span(layout_.runs)
        .subspan(static_cast<size_t>(group.run0), static_cast<size_t>(group.runs));
  }

  DeviceLsGroup Group(const LsGroup& of) {
    DeviceLsGroup group;
    group.row0 = of.row0;
    group.rows = of.rows;
    group.fresh = of.group == CacheStep::kPrefill;
    group.plan = StagePlan(of.plan, lists_);
    for (int strip = 0; strip < std::ssize(shape_.strips); ++strip) {
      group.tables.push_back(Table(of, strip));
    }
    std::vector<CacheRowPlace> places(static_cast<size_t>(of.rows), CacheRowPlace{-1, 0});
    if (step_ != nullptr) Convert(step_->places(of.group, kWindowStrip), places.data());
    group.window_rows = lists_.Add(places);
    return group;
  }

  // With room for whatever the runs may hold.
  DeviceBlockTable Table(const LsGroup& group, int strip) {
    int64_t room = 0;
    for (const TokenRun& run : RunsOf(group)) {
      room += strip == kWindowStrip ? shape_.MaxBlocks(strip)
                                    : shape_.Blocks(strip, run.start + run.rows());
    }
    std::vector<int32_t> blocks(static_cast<size_t>(room));
    std::vector<int32_t> offsets(static_cast<size_t>(group.runs));
    if (step_ != nullptr) {
      const kernels::CacheTable& table = step_->table(group.group, strip);
      KERNEL_CHECK(table.blocks.size() <= blocks.size());
      std::ranges::copy(table.blocks, blocks.begin());
      for (size_t i = 0; i < offsets.size(); ++i) {
        offsets[i] = kernels::cuda::AbsoluteOffset(table, i);
      }
    }
    return {lists_.Add(blocks), lists_.Add(offsets)};
  }

  void Convert(std::span<const kernels::CachePlace> from, CacheRowPlace* to) const {
    for (const kernels::CachePlace& place : from) *to++ = kernels::cuda::PlaceOf(*cache_, place);
  }

  const CacheRowPlace* PageRows(int strip) {
    std::vector<CacheRowPlace> places(
        static_cast<size_t>(layout_.closed_segments() * config_.rank));
    CacheRowPlace* next = places.data();
    for (const LsGroup& group : layout_.groups) {
      // The step may hold decoding runs as well; they write their pages themselves.
      if (group.group == CacheStep::kDecode) continue;
      if (step_ != nullptr) Convert(step_->places(group.group, strip), next);
      next += layout_.closed[&group - layout_.groups.data()] * config_.rank;
    }
    return lists_.Add(places);
  }

  // A segment that was begun before, or will go on, has its sums in the cache.
  DevicePieces Pieces(bool closing) {
    std::vector<PoolRun> runs;
    for (size_t i = 0; i < layout_.pieces.size(); ++i) {
      const LsPiece& piece = layout_.pieces[i];
      if (piece.closes != closing) continue;
      PoolRun& run = runs.emplace_back(PoolRun{});
      run.begin = layout_.piece_rows[i];
      run.end = layout_.piece_rows[i + 1];
      run.begins = piece.resumes ? 0 : 1;
      const bool cached = piece.resumes || !piece.closes;
      run.shifted = cached ? 1 : 0;
      run.state = reinterpret_cast<float*>(cached ? CachedState(piece) : Scratch(runs.size() - 1));
    }
    return {lists_.Add(runs), static_cast<int32_t>(runs.size())};
  }
  std::byte* CachedState(const LsPiece& piece) const {
    if (step_ == nullptr) return nullptr;
    return cache_->StateAddress(layout_.runs[piece.run].sequence->cache(), 0);
  }
  std::byte* Scratch(size_t i) const {
    return states_ == nullptr ? nullptr : states_ + i * DeviceStateBytes(config_);
  }

  const kernels::CacheShape shape_;
  const LsLmConfig& config_;
  const LsPassLayout& layout_;
  const kernels::ProjectionCache* const cache_;
  const CacheStep* const step_;
  std::byte* const states_;
  StagedLists& lists_;
};

}  // namespace

size_t DeviceStateBytes(const LsLmConfig& config) {
  return kernels::AlignUp(kernels::PoolStateBytes(PoolColumns(config), PoolWidths(config)));
}

DeviceLsLists StageLists(const LsLmConfig& config, const LsPassLayout& layout,
                         const kernels::ProjectionCache* cache, const CacheStep* step,
                         std::byte* states, StagedLists& lists) {
  return Stager(config, layout, cache, step, states, lists).Stage();
}

}  // namespace longview::models
