#include "kernels/cuda/token/decode_room.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/cuda/span/decode_plan.h"
#include "kernels/cuda/span/launch_shape.h"

namespace longview::kernels::cuda {
namespace {

// Fewer rows than this cost a product as much as so many do.
constexpr int32_t kFewClosing = 8;

int32_t RoundPages(int64_t pages) {
  return static_cast<int32_t>(
      std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(pages, kBlockSlots))));
}

int32_t RoundClosing(int32_t closing, int32_t rows) {
  if (closing == 0) return 0;
  const auto rounded = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(closing)));
  return std::min(rows, std::max(rounded, kFewClosing));
}

Plan PlanRows(const DecodeShape& shape, std::span<const int32_t> positions, int32_t pages) {
  std::vector<ScheduleRun> runs;
  for (const int32_t position : positions) {
    runs.push_back({static_cast<int32_t>(runs.size()), 1, position});
  }
  Plan plan = PlanSchedule(shape.attention, /*fresh=*/false, runs, kDeviceTileRows);
  ReadScores(0, shape.attention.window, pages, plan);
  return CutForDecode(plan);
}

// Pieces that so many neighbouring slots may lie in.
int64_t PiecesAnywhere(int64_t slots) { return slots < 2 ? slots : (slots - 2) / kDecodePiece + 2; }
int64_t PiecesFromZero(int64_t slots) { return (slots + kDecodePiece - 1) / kDecodePiece; }

// Pieces of one query of a text of up to `tokens` tokens, by source; a piece is one span.
int32_t MostPieces(const SchedulePattern& pattern, int64_t tokens) {
  const int64_t segments = tokens / pattern.segment * pattern.rank;
  const int64_t memory = pattern.memory / pattern.segment * pattern.rank;
  int64_t pieces = 0;
  for (const ScheduleSource source : pattern.Sources(/*fresh=*/false)) {
    switch (source) {
      case ScheduleSource::kConstantSegments:
        pieces += PiecesFromZero(memory);
        break;
      case ScheduleSource::kEarly:
        pieces += PiecesAnywhere(std::min(segments, memory));
        break;
      case ScheduleSource::kLate:
        pieces += pattern.paper() ? PiecesFromZero(segments)
                                  : PiecesAnywhere(std::min<int64_t>(
                                        segments, pattern.block / pattern.segment * pattern.rank));
        break;
      case ScheduleSource::kConstantWindow:
        pieces += PiecesFromZero(pattern.window - 1);
        break;
      default:
        pieces += PiecesAnywhere(std::min<int64_t>(tokens, pattern.window));
    }
  }
  return static_cast<int32_t>(pieces);
}

}  // namespace

DecodePlan PlanDecode(const DecodeShape& shape, std::span<const int32_t> positions) {
  DecodePlan planned;
  DecodeRoom& room = planned.room;
  room.rows = BatchBucket(static_cast<int>(positions.size()));
  int64_t pages = 0;
  int32_t closing = 0;
  for (const int32_t position : positions) {
    const bool closes = (position + 1) % shape.attention.segment == 0;
    // The page that a row writes has a place in the block tables too.
    pages = std::max(
        {pages, shape.attention.SegmentIds(position), shape.attention.SegmentIds(position + 1)});
    closing += closes ? 1 : 0;
  }
  room.pages = RoundPages(pages);
  room.closing = RoundClosing(closing, room.rows);
  planned.plan = PlanRows(shape, positions, room.pages);
  room.capacity = RoundedUp(CapacityOf(planned.plan));
  return planned;
}

DecodeRoom MostRoom(const DecodeShape& shape, int sequences, int32_t tokens) {
  const int32_t heads = shape.heads();
  DecodeRoom room;
  room.rows = room.closing = BatchBucket(sequences);
  room.pages = RoundPages(shape.attention.MostSegmentIds(int64_t{tokens} + 1));
  PlanCapacity most;
  most.tiles = most.spans = most.biases = room.rows * MostPieces(shape.attention, tokens);
  most.items = most.partial_slots = most.tiles * heads;
  most.merges = room.rows * heads;
  most.sources = static_cast<int32_t>(shape.attention.Sources(/*fresh=*/false).size());
  room.capacity = RoundedUp(most);
  return room;
}

int64_t TableBlocks(const CacheShape& cache, const DecodeRoom& room, int strip) {
  const bool all = cache.strips[static_cast<size_t>(strip)].keep == 0;
  return room.rows * (all ? room.pages / kBlockSlots : cache.MaxBlocks(strip));
}

}  // namespace longview::kernels::cuda
