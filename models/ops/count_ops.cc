#include "models/ops/count_ops.h"

namespace longview::models {
namespace {

double Product(const Rows& rows, const Weight& weight) {
  return static_cast<double>(rows.count) * static_cast<double>(weight.in) *
         static_cast<double>(weight.out);
}

double Elements(const Rows& rows, int64_t columns) {
  return static_cast<double>(rows.count) * static_cast<double>(columns);
}

}  // namespace

int64_t ClosingPieces(std::span<const SegmentPiece> pieces) {
  return std::count_if(pieces.begin(), pieces.end(),
                       [](const SegmentPiece& piece) { return piece.closes; });
}

PlanRef CountOps::Stage(const kernels::Plan& plan) {
  need_.lists += PlanBytes(plan);
  need_.most_lists += MostPlanBytes(plan);
  return {&plan, -1};
}

void CountOps::CountList(size_t bytes) {
  need_.lists += ListBytes(bytes);
  need_.most_lists += ListBytes(bytes);
}

IndexRef CountOps::Stage(std::span<const int32_t> values) {
  CountList(values.size_bytes());
  return {nullptr, static_cast<int64_t>(values.size())};
}

SegmentsRef CountOps::Stage(std::span<const int32_t> offsets, std::span<const uint8_t> visible) {
  const size_t bytes = SegmentBytes(offsets, visible);
  need_.lists += bytes;
  need_.most_lists += bytes;
  return {offsets, visible.data(), -1};
}

FoldsRef CountOps::Stage(std::span<const FoldGroup> groups, std::span<const int32_t> rows,
                         std::span<const int32_t> outs, std::span<const uint8_t> visible) {
  const size_t bytes = FoldBytes(groups, visible);
  need_.lists += bytes;
  need_.most_lists += bytes;
  return {groups, Stage(rows), Stage(outs), nullptr, -1};
}

SlicesRef CountOps::Stage(std::span<const kernels::SliceRows> slices,
                          std::span<const uint8_t> visible) {
  const size_t bytes = SliceBytes(slices.size(), visible);
  need_.lists += bytes;
  need_.most_lists += bytes;
  return {nullptr, nullptr, static_cast<int64_t>(slices.size())};
}

PartsRef CountOps::Stage(std::span<const kernels::SlicePart> parts) {
  CountList(parts.size_bytes());
  return {nullptr, static_cast<int64_t>(parts.size())};
}

StatesRef CountOps::Stage(std::span<const kernels::StateRow> rows) {
  CountList(rows.size_bytes());
  return {nullptr, static_cast<int64_t>(rows.size())};
}

OuterRef CountOps::Stage(std::span<const kernels::OuterSequence> sequences) {
  CountList(sequences.size() * sizeof(kernels::cuda::DeviceOuterSequence));
  return {sequences, nullptr};
}

void CountOps::Embed(const EmbedArgs& args) {
  UseScratch(EmbedScratch(args));
  work_.rows += args.x.elements();
}

void CountOps::Residual(const Rows& x, const Rows&, const NormWeight*, NormPlace, const Rows&) {
  work_.rows += x.elements();
}

void CountOps::AddRows(const Rows& in, const Rows& added, IndexRef, const Rows&) {
  UseScratch(AddRowsScratch(added));
  work_.rows += in.elements();
}

PlacesRef CountOps::StagePlaces(const kernels::ProjectionCache*,
                                std::span<const kernels::CachePlace> places) {
  CountList(places.size() * sizeof(kernels::cuda::CacheRowPlace));
  return {};
}

PiecesRef CountOps::StagePieces(const kernels::ProjectionCache*,
                                std::span<const SegmentPiece> pieces) {
  const size_t bytes = ListBytes(pieces.size() * sizeof(kernels::cuda::PoolRun));
  need_.lists += bytes;
  need_.most_lists += bytes;
  return {pieces, ClosingPieces(pieces), nullptr};
}

void CountOps::Project(const Weight& weight, const Rows& in, const Rows& out) {
  UseScratch(ProjectScratch(weight, in, out));
  CountProduct(weight, in);
}

void CountOps::Deliver(const Weight& weight, const Rows& in, const Rows&, std::span<float* const>) {
  UseScratch(DeliverScratch(weight, in));
  CountProduct(weight, in);
}

// Per token and row of P: the weight of its write, both sums and their two reads.
void CountOps::AppendOuter(const OuterArgs& args) {
  UseScratch(OuterScratch(args));
  for (const kernels::OuterSequence& sequence : args.sequences.host) {
    work_.attention += 5.0 * static_cast<double>(sequence.tokens * sequence.rows * args.q.width);
  }
}

void CountOps::DeliverAdaptive(const Weight& weight, IndexRef, const Rows& in, const Rows&,
                               std::span<float* const>) {
  UseScratch(AdaptiveScratch(weight, in));
  CountProduct(weight, in);
}

void CountOps::ProjectAdded(const Weight& weight, const Rows& in, const NormWeight&, NormPlace,
                            const Rows&, const Rows&) {
  UseScratch(MadeScratch(weight, in));
  CountProduct(weight, in);
}

void CountOps::ProjectActivated(const Weight& weight, Activation, const NormWeight&, const Rows& in,
                                const Rows&) {
  UseScratch(MadeScratch(weight, in));
  CountProduct(weight, in);
}

void CountOps::CountProduct(const Weight& weight, const Rows& in) {
  if (!in.few) UsePanels(weight.out);
  work_.linear += Product(in, weight);
  work_.rows += Elements(in, weight.out);
}

void CountOps::ProjectRotated(const Weight& weight, const Rotary&, const Rows& in,
                              const Rows& out) {
  Project(weight, in, out);
}

void CountOps::ProjectPlaces(const Weight& weight, const Table*, IndexRef, const Rows& in,
                             const Rows& out) {
  Project(weight, in, out);
}

void CountOps::ProjectLongShort(const Weight& weight, const NormWeight&, const Rows& in, int64_t,
                                const LongShortRows& out) {
  Project(weight, in, out.q);
}

void CountOps::Landmarks(const LandmarkArgs& args) {
  UseScratch(LandmarkScratch(args));
  const double rows = args.segments.offsets.back();
  work_.attention += 2 * rows * static_cast<double>(args.rank) * static_cast<double>(args.width());
}

void CountOps::AppendSegments(const OpenSegmentArgs& args) {
  UseScratch(OpenSegmentScratch(args));
  work_.attention += 2 * args.rank * Elements(args.from.q, args.width());
}

void CountOps::StoreProjected(const Weight& weight, const NormWeight&, const Rows& in,
                              const StripRef&, const PlacesRef&) {
  UseScratch(StoreProjectedScratch(weight, in));
  CountProduct(weight, in);
}

void CountOps::ScorePositions(const Rows& q, int, std::span<const PositionScores> tables) {
  UseScratch(PositionScratch(q, tables));
  for (const PositionScores& table : tables) {
    work_.attention += q.elements() * static_cast<double>(table.stride);
  }
}

void CountOps::PoolSlices(const Rows& from, SlicesRef, kernels::SlicePooling, const Rows& out) {
  UseScratch(PoolSlicesScratch(out));
  work_.attention += from.elements();
}

void CountOps::PoolParts(const Rows& from, PartsRef, kernels::SlicePooling, const Rows&) {
  work_.attention += from.elements();
}

void CountOps::MixSlices(const PlaceMixer& mixer, const Rows& from, SlicesRef slices, const Rows&) {
  UseScratch(MixScratch(mixer, from, slices.count));
  work_.attention += 2 * from.elements() * static_cast<double>(mixer.hidden());
}

void CountOps::Attend(PlanRef plan, const kernels::Call& call) {
  UseScratch(AttendScratch(*plan.plan, call));
  work_.attention += static_cast<double>(plan.plan->useful) * (call.Dk + call.Dv);
  for (const kernels::Table& table : call.tables) {
    if (table.entry_stride > 1) {  // Rows that queries are multiplied with too.
      work_.attention += static_cast<double>(plan.plan->useful) * call.Dk;
    }
  }
}

// Per global row: its query, then a score and a weighted sum per head and token, each as wide as
// the residual stream.
void CountOps::AttendFolded(const FoldedArgs& args) {
  UseScratch(FoldedScratch(args));
  const auto width = static_cast<double>(args.width());
  for (const FoldGroup& group : args.folds.groups) {
    const auto count = static_cast<double>(group.count);
    work_.linear += count * width * width;
    work_.attention += 2 * count * args.heads * static_cast<double>(group.tokens) * width;
  }
}

void CountOps::FeedForward(const BlockWeights& weights, const BlockRows& rows) {
  UseScratch(FeedForwardScratch(weights, rows));
  const int64_t gates = weights.gate != nullptr ? weights.gate->out : 0;
  if (!rows.z.few) UsePanels(weights.expand->out + std::max(gates, weights.contract->out));
  for (const Weight* weight : {weights.out, weights.expand, weights.gate, weights.contract}) {
    if (weight == nullptr) continue;
    work_.linear += Product(rows.x, *weight);
    work_.rows += Elements(rows.x, weight->out);
  }
}

}  // namespace longview::models
