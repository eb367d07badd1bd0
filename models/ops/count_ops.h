// A forward that computes nothing: counts what its operations need and cost.
//
// Each backend has a CountOps of its own for its differences (host_ops.h, device_ops.h).
// Handles without values are enough, so a model can be counted before it is loaded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "models/encoder/work.h"
#include "models/ops/ops.h"

namespace longview::models {

// Bytes, exact.
struct OpsNeed {
  size_t lists = 0;       // Staged.
  size_t most_lists = 0;  // The same for sequences of these lengths whatever is masked.
  size_t buffers = 0;     // Taken.
  size_t scratch = 0;     // The most any operation uses; operations share it.
  size_t transient = 0;   // Results of the library, of the operation that has most alive.
  bool panels = false;    // Whether any linear takes many rows.

  size_t memory() const { return buffers + scratch; }
};

// Pieces that end their segments.
int64_t ClosingPieces(std::span<const SegmentPiece> pieces);

class CountOps : public Ops {
 public:
  OpsNeed need() {
    need_.buffers = carver().used();
    return need_;
  }
  // Multiply-adds and treated elements.
  const EncoderWork& work() const { return work_; }

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

  void Embed(const EmbedArgs& args) override;
  void Gather(const Rows&, IndexRef, const Rows&) override {}
  void Gather(const Table&, IndexRef, const Rows&) override {}
  void Scatter(const Rows&, IndexRef, const Rows&) override {}
  void Clear(const Rows&) override {}
  void AddRows(const Rows& in, const Rows& added, IndexRef index, const Rows& out) override;
  void Keep(const Rows&, IndexRef, const Rows&) override {}
  void Narrow(const Rows&, const Rows&) override {}
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
  void Store(const StripRef&, const Rows&, const Rows&, const PlacesRef&) override {}
  void Load(const StripRef&, const PlacesRef&, const Rows&) override {}
  void LoadStates(StatesRef, int64_t, const Rows&) override {}
  void StoreStates(const Rows&, StatesRef, int64_t) override {}
  void AppendOuter(const OuterArgs& args) override;
  void PackOuter(const Rows&, float*) override {}
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

 protected:
  explicit CountOps(const Shape& shape) : Ops(shape, Carver(nullptr)) {}

  // Bytes of one operation.
  virtual size_t EmbedScratch(const EmbedArgs&) const { return 0; }
  virtual size_t AttendScratch(const kernels::Plan& plan, const kernels::Call& call) const = 0;
  virtual size_t FeedForwardScratch(const BlockWeights&, const BlockRows&) const = 0;
  virtual size_t LandmarkScratch(const LandmarkArgs& args) const = 0;
  virtual size_t OpenSegmentScratch(const OpenSegmentArgs& args) const = 0;
  virtual size_t StoreProjectedScratch(const Weight& weight, const Rows& in) const = 0;
  virtual size_t PositionScratch(const Rows&, std::span<const PositionScores>) const { return 0; }
  virtual size_t ProjectScratch(const Weight&, const Rows&, const Rows&) const { return 0; }
  // A linear whose results something is made of: ProjectAdded, ProjectActivated; Deliver.
  virtual size_t MadeScratch(const Weight&, const Rows& in) const = 0;
  virtual size_t DeliverScratch(const Weight&, const Rows& in) const = 0;
  virtual size_t AdaptiveScratch(const Weight&, const Rows& in) const = 0;
  virtual size_t OuterScratch(const OuterArgs&) const { return 0; }
  virtual size_t AddRowsScratch(const Rows&) const { return 0; }
  virtual size_t PoolSlicesScratch(const Rows&) const { return 0; }
  virtual size_t FoldedScratch(const FoldedArgs& args) const = 0;
  virtual size_t FoldBytes(std::span<const FoldGroup> groups,
                           std::span<const uint8_t> visible) const = 0;
  virtual size_t MixScratch(const PlaceMixer& mixer, const Rows& rows, int64_t slices) const = 0;
  virtual size_t SliceBytes(size_t slices, std::span<const uint8_t> visible) const = 0;
  virtual size_t SegmentBytes(std::span<const int32_t> offsets,
                              std::span<const uint8_t> visible) const = 0;
  virtual size_t PanelBytes(int64_t columns) const = 0;
  virtual size_t ListBytes(size_t bytes) const = 0;
  virtual size_t PlanBytes(const kernels::Plan& plan) const = 0;
  virtual size_t MostPlanBytes(const kernels::Plan& plan) const = 0;

 private:
  void UseScratch(size_t bytes) { need_.scratch = std::max(need_.scratch, bytes); }
  void CountList(size_t bytes);
  void CountProduct(const Weight& weight, const Rows& in);
  void UsePanels(int64_t columns) {
    need_.panels = true;
    need_.transient = std::max(need_.transient, PanelBytes(columns));
  }

  OpsNeed need_;
  EncoderWork work_;
};

}  // namespace longview::models
