#include "kernels/cuda/token/decode_room.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/cuda/span/decode_plan.h"
#include "kernels/cuda/span/launch_shape.h"
#include "kernels/span/paged_planner.h"

namespace longview::kernels::cuda {
namespace {

int32_t RoundPages(int32_t pages) {
  return static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::max(pages, kBlockSlots))));
}

Plan PlanRows(const DecodeShape& shape, std::span<const int32_t> positions, int32_t pages) {
  PagedPattern pattern;
  pattern.heads = shape.heads;
  pattern.window = shape.window;
  pattern.segment = shape.segment;
  pattern.rank = shape.rank;
  pattern.window_table = kDecodeWindowTable;
  pattern.page_table = kDecodePageTable;
  pattern.tile_rows = kDeviceTileRows;
  std::vector<PagedSequence> batch;
  for (const int32_t position : positions) {
    PagedSequence& sequence = batch.emplace_back();
    sequence.query_row0 = static_cast<int32_t>(batch.size()) - 1;
    sequence.tokens = 1;
    sequence.start = position;
  }
  Plan plan = PlanPaged(pattern, batch);
  for (const Tile& tile : plan.tiles) {
    for (int32_t s = tile.span0; s < tile.span0 + tile.spans; ++s) {
      Bias& bias = plan.biases[plan.spans[s].bias];
      bias.kind = kAdded;
      bias.base += tile.row0 * (bias.id == kDecodeWindowTable ? shape.window : pages);
    }
  }
  return CutForDecode(plan);
}

// The larger of each, of `rows` rows.
void Include(const PlanCapacity& one, int32_t rows, PlanCapacity& most) {
  constexpr int32_t PlanCapacity::*kCounts[] = {
      &PlanCapacity::tiles,       &PlanCapacity::spans,        &PlanCapacity::intervals,
      &PlanCapacity::biases,      &PlanCapacity::items,        &PlanCapacity::merges,
      &PlanCapacity::valid_words, &PlanCapacity::partial_slots};
  for (int32_t PlanCapacity::*const count : kCounts) {
    most.*count = std::max(most.*count, rows * one.*count);
  }
  most.sources = one.sources;
}

}  // namespace

DecodePlan PlanDecode(const DecodeShape& shape, std::span<const int32_t> positions) {
  DecodePlan planned;
  DecodeRoom& room = planned.room;
  room.rows = BatchBucket(static_cast<int>(positions.size()));
  room.pages = RoundPages(shape.Pages(*std::ranges::max_element(positions) + 1));
  planned.plan = PlanRows(shape, positions, room.pages);
  room.capacity = RoundedUp(CapacityOf(planned.plan));
  return planned;
}

// A sequence's part of a plan repeats with the places of its window on the grid of pieces.
DecodeRoom MostRoom(const DecodeShape& shape, int sequences, int32_t tokens) {
  DecodeRoom room;
  room.rows = BatchBucket(sequences);
  room.pages = RoundPages(shape.Pages(tokens));
  for (int32_t position = std::max(0, tokens - kDecodePiece); position < tokens; ++position) {
    Include(CapacityOf(PlanRows(shape, {&position, 1}, room.pages)), room.rows, room.capacity);
  }
  room.capacity = RoundedUp(room.capacity);
  return room;
}

int64_t WindowBlocks(const CacheShape& cache, const DecodeRoom& room) {
  return room.rows * cache.MaxBlocks(0);
}

int64_t PageBlocks(const DecodeRoom& room) { return int64_t{room.rows} * room.pages / kBlockSlots; }

}  // namespace longview::kernels::cuda
