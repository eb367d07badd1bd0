// Operations on LibTorch's threads: each is fused panel by panel, while a panel is in cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/layers/compute_context.h"
#include "models/layers/panels.h"
#include "models/layers/stopwatch.h"
#include "models/ops/count_ops.h"
#include "models/parallel.h"

namespace longview::models {

// Keys and values lie beside their queries as projected, and in their place or in rows of their own
// normalised.
LongShortRows TakeLongShortOnHost(Ops& ops, int64_t count, int64_t width, int64_t columns,
                                  bool beside);

class HostOps final : public Ops {
 public:
  // `memory` holds need.memory() bytes, 64-byte aligned. All is borrowed; `times` may be null.
  HostOps(const ComputeContext& context, const OpsNeed& need, std::byte* memory,
          EncoderTimes* times);

  PlanRef Stage(const kernels::Plan& plan) override { return {&plan, -1}; }
  // Borrows the values.
  IndexRef Stage(std::span<const int32_t> values) override {
    return {values.data(), static_cast<int64_t>(values.size())};
  }
  SegmentsRef Stage(std::span<const int32_t> offsets, std::span<const uint8_t> visible) override {
    return {offsets, visible.data(), -1};
  }
  FoldsRef Stage(std::span<const FoldGroup> groups, std::span<const int32_t> rows,
                 std::span<const int32_t> outs, std::span<const uint8_t> visible) override {
    return {groups, Stage(rows), Stage(outs), visible.data(), -1};
  }
  SlicesRef Stage(std::span<const kernels::SliceRows> slices,
                  std::span<const uint8_t> visible) override {
    return {slices.data(), visible.data(), static_cast<int64_t>(slices.size())};
  }
  PartsRef Stage(std::span<const kernels::SlicePart> parts) override {
    return {parts.data(), static_cast<int64_t>(parts.size())};
  }
  StatesRef Stage(std::span<const kernels::StateRow> rows) override {
    return {rows.data(), static_cast<int64_t>(rows.size())};
  }
  OuterRef Stage(std::span<const kernels::OuterSequence> sequences) override {
    return {sequences, nullptr};
  }
  PlacesRef StagePlaces(const kernels::ProjectionCache*,
                        std::span<const kernels::CachePlace> places) override {
    return {places, nullptr};
  }
  PiecesRef StagePieces(const kernels::ProjectionCache*,
                        std::span<const SegmentPiece> pieces) override {
    return {pieces, ClosingPieces(pieces), nullptr};
  }
  Rows TakeKept(const Rows& x, int64_t count, const Rows&) override { return x.First(count); }
  LongShortRows TakeLongShort(int64_t count, int64_t width, int64_t columns, bool beside) override {
    return TakeLongShortOnHost(*this, count, width, columns, beside);
  }

  void Embed(const EmbedArgs& args) override;
  void Gather(const Rows& from, IndexRef rows, const Rows& to) override;
  void Gather(const Table& from, IndexRef rows, const Rows& to) override;
  void Scatter(const Rows& from, IndexRef places, const Rows& to) override;
  void Clear(const Rows& rows) override;
  void AddRows(const Rows& in, const Rows& added, IndexRef index, const Rows& out) override;
  void Keep(const Rows& x, IndexRef rows, const Rows& kept) override;
  void Narrow(const Rows& x, const Rows& out) override;
  void Residual(const Rows& x, const Rows& y, const NormWeight* norm, NormPlace place,
                const Rows& out) override;
  void Project(const Weight& weight, const Rows& in, const Rows& out) override;
  void ProjectRotated(const Weight& weight, const Rotary& rotary, const Rows& in,
                      const Rows& out) override;
  void ProjectPlaces(const Weight& weight, const Table* bias, IndexRef entries, const Rows& in,
                     const Rows& out) override;
  void ProjectLongShort(const Weight& weight, const NormWeight& norm, const Rows& in,
                        int64_t normed, const LongShortRows& out) override;
  void Landmarks(const LandmarkArgs& args) override;
  void AppendSegments(const OpenSegmentArgs& args) override;
  void PoolSlices(const Rows& from, SlicesRef slices, kernels::SlicePooling pooling,
                  const Rows& out) override;
  void PoolParts(const Rows& from, PartsRef parts, kernels::SlicePooling pooling,
                 const Rows& sums) override;
  void MixSlices(const PlaceMixer& mixer, const Rows& from, SlicesRef slices,
                 const Rows& out) override;
  void Attend(PlanRef plan, const kernels::Call& call) override;
  void AttendFolded(const FoldedArgs& args) override;
  void FeedForward(const BlockWeights& weights, const BlockRows& rows) override;
  void Store(const StripRef& strip, const Rows& keys, const Rows& values,
             const PlacesRef& places) override;
  void Load(const StripRef& strip, const PlacesRef& places, const Rows& keys) override;
  void LoadStates(StatesRef states, int64_t shift, const Rows& rows) override;
  void StoreStates(const Rows& rows, StatesRef states, int64_t shift) override;
  void AppendOuter(const OuterArgs& args) override;
  void PackOuter(const Rows& rows, float* packed) override;
  void ProjectAdded(const Weight& weight, const Rows& in, const NormWeight& norm, NormPlace place,
                    const Rows& x, const Rows& input) override;
  void StoreProjected(const Weight& weight, const NormWeight& norm, const Rows& in,
                      const StripRef& strip, const PlacesRef& places) override;
  void ScorePositions(const Rows& q, int heads, std::span<const PositionScores> tables) override;
  void ProjectActivated(const Weight& weight, Activation activation, const NormWeight& norm,
                        const Rows& in, const Rows& out) override;
  void Deliver(const Weight& weight, const Rows& in, const Rows& out,
               std::span<float* const> to) override;
  void DeliverAdaptive(const Weight& weight, IndexRef cutoffs, const Rows& in, const Rows& out,
                       std::span<float* const> to) override;
  Rows TakeDelivered(int64_t, int64_t) override { return {}; }

 private:
  // Rows that a thread takes at least: fewer cost more to hand out than to treat.
  static constexpr long kGrain = 8;

  // body(i) for i < count on all threads, timed as the rest.
  template <typename Body>
  void Each(int64_t count, Body&& body) const {
    const Stopwatch watch(times_ ? &times_->rest : nullptr);
    ParallelRanges(*context_.pool, count, kGrain, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) body(i);
    });
  }
  // use(row, y) for every row of y = in W^T: by panels, or few rows at once.
  template <typename Use>
  void Multiply(const Weight& weight, const Rows& in, Use&& use) const {
    const DenseLayer& layer = *weight.host;
    if (in.few) {
      ForEachFewRow(layer, in.data, in.count, scratch_, *context_.pool, times_, use);
    } else {
      ForEachRow(layer, in.data, in.count, layer.linear.sizes(), *context_.pool, times_, use);
    }
  }
  void FeedFewRows(const BlockWeights& weights, const BlockRows& rows) const;
  // The threads for small work on `rows` rows: waking them costs more than a few rows do.
  const kernels::ParallelFor& PoolFor(int64_t rows) const {
    constexpr int64_t kFewRows = 4;
    if (rows <= kFewRows) return serial_;
    return *context_.pool;
  }
  // Zeros for a norm or sum without a bias.
  const float* Zeros(int64_t width);
  void RunPool(const Rows& from, kernels::SlicePooling pooling, const uint8_t* visible);
  void MixSlice(const PlaceMixer& mixer, const kernels::SliceRows& slice, const uint8_t* visible,
                const Rows& from, const Rows& out, float* scratch) const;

  const ComputeContext context_;
  const RowKernels& kernels_;
  const RowKernels& floats_;
  std::byte* const scratch_;
  EncoderTimes* const times_;
  const kernels::SerialFor serial_;
  std::vector<float> zeros_;
  std::vector<kernels::SlicePiece> pieces_;
  // Lists for AppendSegments: the states of all pieces, their first rows and the end, and which of
  // them end their segments.
  std::vector<kernels::PoolState> states_;
  std::vector<int32_t> segment_rows_;
  std::vector<int64_t> closing_;
};

class HostCount final : public CountOps {
 public:
  // Borrows the context's pool.
  explicit HostCount(const ComputeContext& context);

  Rows TakeKept(const Rows& x, int64_t count, const Rows&) override { return x.First(count); }
  LongShortRows TakeLongShort(int64_t count, int64_t width, int64_t columns, bool beside) override {
    return TakeLongShortOnHost(*this, count, width, columns, beside);
  }
  Rows TakeDelivered(int64_t, int64_t) override { return {}; }

 private:
  size_t EmbedScratch(const EmbedArgs& args) const override;
  size_t AttendScratch(const kernels::Plan& plan, const kernels::Call& call) const override;
  size_t FeedForwardScratch(const BlockWeights& weights, const BlockRows& rows) const override;
  size_t ProjectScratch(const Weight& weight, const Rows& in, const Rows&) const override {
    return MadeScratch(weight, in);
  }
  size_t MadeScratch(const Weight& weight, const Rows& in) const override;
  size_t DeliverScratch(const Weight& weight, const Rows& in) const override {
    return MadeScratch(weight, in);
  }
  size_t AdaptiveScratch(const Weight& weight, const Rows&) const override;
  size_t OuterScratch(const OuterArgs& args) const override;
  size_t LandmarkScratch(const LandmarkArgs& args) const override;
  size_t OpenSegmentScratch(const OpenSegmentArgs& args) const override;
  size_t StoreProjectedScratch(const Weight& weight, const Rows& in) const override;
  size_t PositionScratch(const Rows& q, std::span<const PositionScores> tables) const override;
  size_t AddRowsScratch(const Rows& added) const override;
  size_t PoolSlicesScratch(const Rows& out) const override;
  size_t FoldedScratch(const FoldedArgs& args) const override;
  size_t FoldBytes(std::span<const FoldGroup>, std::span<const uint8_t>) const override {
    return 0;
  }
  size_t MixScratch(const PlaceMixer& mixer, const Rows& rows, int64_t slices) const override;
  size_t SliceBytes(size_t, std::span<const uint8_t>) const override { return 0; }
  size_t SegmentBytes(std::span<const int32_t>, std::span<const uint8_t>) const override {
    return 0;
  }
  size_t PanelBytes(int64_t columns) const override;
  size_t ListBytes(size_t) const override { return 0; }
  size_t PlanBytes(const kernels::Plan&) const override { return 0; }
  size_t MostPlanBytes(const kernels::Plan&) const override { return 0; }

  const ComputeContext context_;
};

}  // namespace longview::models
