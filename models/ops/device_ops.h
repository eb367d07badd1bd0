// Operations as work for a device's stream: nothing waits, nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/pool/pool_api.h"
#include "models/device/device.h"
#include "models/device/device_attention.h"
#include "models/device/device_rows.h"
#include "models/device/device_run.h"
#include "models/device/staged_lists.h"
#include "models/ops/count_ops.h"

namespace longview::models {

// Rows that are kept go to memory of their own: other rows are still being read.
Rows TakeKeptOnDevice(Ops& ops, const Rows& x, int64_t count, const Rows& spare);
// Projections stay as they are; normalised keys and values have memory of their own.
LongShortRows TakeLongShortOnDevice(Ops& ops, int64_t count, int64_t width, int64_t columns);

// Used within a Device::Turn but for staging.
class DeviceOps final : public Ops {
 public:
  // Borrows the device.
  DeviceOps(const Device& device, Compute compute);

  // Where lists are staged; before the first Stage.
  void StageInto(StagedLists& lists) { lists_ = &lists; }
  // Takes need.memory() bytes of `carver` for buffers and scratch; before the first Take, and
  // before pieces are staged.
  void UseMemory(Carver& carver, const OpsNeed& need);
  // Has plans staged in room for a little more than they are, so that those of neighbouring steps
  // lie alike; before the first Stage.
  void RoundPlans() { rounds_ = true; }
  // Sets the timer that measures the work from now on.
  void set_timer(const DeviceTimer* timer) { timer_ = timer; }

  PlanRef Stage(const kernels::Plan& plan) override;
  IndexRef Stage(std::span<const int32_t> values) override;
  SegmentsRef Stage(std::span<const int32_t> offsets, std::span<const uint8_t> visible) override;
  FoldsRef Stage(std::span<const FoldGroup> groups, std::span<const int32_t> rows,
                 std::span<const int32_t> outs, std::span<const uint8_t> visible) override;
  SlicesRef Stage(std::span<const kernels::SliceRows> slices,
                  std::span<const uint8_t> visible) override;
  PartsRef Stage(std::span<const kernels::SlicePart> parts) override;
  StatesRef Stage(std::span<const kernels::StateRow> rows) override;
  OuterRef Stage(std::span<const kernels::OuterSequence> sequences) override;
  PlacesRef StagePlaces(const kernels::ProjectionCache* cache,
                        std::span<const kernels::CachePlace> places) override;
  PiecesRef StagePieces(const kernels::ProjectionCache* cache,
                        std::span<const SegmentPiece> pieces) override;
  Rows TakeKept(const Rows& x, int64_t count, const Rows& spare) override {
    return TakeKeptOnDevice(*this, x, count, spare);
  }
  LongShortRows TakeLongShort(int64_t count, int64_t width, int64_t columns, bool) override {
    return TakeLongShortOnDevice(*this, count, width, columns);
  }

  void Embed(const EmbedArgs& args) override;
  void Gather(const Rows& from, IndexRef rows, const Rows& to) override;
  void Gather(const Table& from, IndexRef rows, const Rows& to) override;
  void Scatter(const Rows& from, IndexRef places, const Rows& to) override;
  void Clear(const Rows& rows) override;
  void AddRows(const Rows& in, const Rows& added, IndexRef index, const Rows& out) override;
  void Keep(const Rows& x, IndexRef rows, const Rows& kept) override { Gather(x, rows, kept); }
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
  Rows TakeDelivered(int64_t count, int64_t width) override {
    return Take(count, width, RowType::kFloat);
  }

 private:
  // y = in W^T, without the bias.
  void Multiply(const Weight& weight, const Rows& in, void* y) const;
  // out = y + b in fp32, of T [out.count, out.width].
  void Widen(const Weight& weight, const void* y, const Rows& out) const;
  template <typename Body>
  void Timed(double EncoderTimes::*sum, Body&& body) const {
    if (timer_ == nullptr) return body();
    timer_->Run(sum, body);
  }
  // Sums of pieces [first, first + count) of those staged.
  void SumPieces(const OpenSegmentArgs& args, int64_t first, int64_t count) const;
  void Copy(const void* from, int64_t from_bytes, IndexRef rows, const Rows& to) const;
  void FillZero(const Rows& rows) const;
  void CopyStates(const Rows& rows, StatesRef states, int64_t shift, bool stores) const;
  DeviceRows RowsOf(int64_t width) const { return DeviceRows(device_, compute(), width); }

  // Segments cut into pieces, which are pooled by themselves and merged in rising order.
  struct StagedSegments {
    const kernels::cuda::PoolPiece* pieces = nullptr;  // [count]
    const int32_t* piece0 = nullptr;                   // [segments + 1]
    const uint8_t* visible = nullptr;                  // [rows]
    int32_t count = 0;
  };

  // Sequences of equally many folded rows, which go together.
  struct StagedFold {
    const int32_t* begins = nullptr;  // [sequences] rows of x.
    const int32_t* ends = nullptr;
    const kernels::cuda::PoolPiece* piece_list = nullptr;  // [pieces]
    const int32_t* piece0 = nullptr;                       // [sequences + 1]
    int32_t first = 0;                                     // Their first group.
    int32_t sequences = 0;
    int32_t pieces = 0;
    int32_t longest = 0;  // Rows of the longest sequence.
  };
  void AttendFold(const FoldedArgs& args, const StagedFold& fold) const;

  const Device& device_;
  StagedLists* lists_ = nullptr;
  bool rounds_ = false;
  std::vector<DevicePlan> plans_;
  std::vector<StagedSegments> segments_;
  std::vector<std::vector<StagedFold>> folds_;
  std::byte* scratch_ = nullptr;
  const DeviceTimer* timer_ = nullptr;
};

class DeviceCount final : public CountOps {
 public:
  // `rounds`: as DeviceOps does after RoundPlans.
  explicit DeviceCount(Compute compute, bool rounds = false);

  Rows TakeKept(const Rows& x, int64_t count, const Rows& spare) override {
    return TakeKeptOnDevice(*this, x, count, spare);
  }
  LongShortRows TakeLongShort(int64_t count, int64_t width, int64_t columns, bool) override {
    return TakeLongShortOnDevice(*this, count, width, columns);
  }
  Rows TakeDelivered(int64_t count, int64_t width) override {
    return Take(count, width, RowType::kFloat);
  }

 private:
  size_t AttendScratch(const kernels::Plan& plan, const kernels::Call& call) const override;
  size_t FeedForwardScratch(const BlockWeights& weights, const BlockRows& rows) const override;
  size_t MadeScratch(const Weight& weight, const Rows& in) const override;
  size_t DeliverScratch(const Weight& weight, const Rows& in) const override;
  size_t AdaptiveScratch(const Weight& weight, const Rows& in) const override;
  size_t LandmarkScratch(const LandmarkArgs& args) const override;
  size_t OpenSegmentScratch(const OpenSegmentArgs& args) const override;
  size_t StoreProjectedScratch(const Weight& weight, const Rows& in) const override;
  size_t ProjectScratch(const Weight& weight, const Rows& in, const Rows& out) const override;
  size_t FoldedScratch(const FoldedArgs& args) const override;
  size_t FoldBytes(std::span<const FoldGroup> groups,
                   std::span<const uint8_t> visible) const override;
  size_t MixScratch(const PlaceMixer& mixer, const Rows& rows, int64_t slices) const override;
  size_t SliceBytes(size_t slices, std::span<const uint8_t> visible) const override;
  size_t SegmentBytes(std::span<const int32_t> offsets,
                      std::span<const uint8_t> visible) const override;
  size_t PanelBytes(int64_t) const override { return 0; }
  size_t ListBytes(size_t bytes) const override { return kernels::AlignUp(bytes); }
  size_t PlanBytes(const kernels::Plan& plan) const override;
  size_t MostPlanBytes(const kernels::Plan& plan) const override { return MaskedPlanBytes(plan); }

  const bool rounds_;
};

}  // namespace longview::models
