#include "kernels/cuda/span/plan_image.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <span>

#include "kernels/base/check.h"
#include "kernels/base/workspace.h"

namespace longview::kernels::cuda {
namespace {

constexpr size_t kArrayAlignment = 16;

// Byte offsets of the arrays.
struct Offsets {
  size_t counts, tiles, spans, intervals, biases, items, merges, sources, slot_rows, valid, end;
};

Offsets OffsetsOf(const PlanCapacity& capacity) {
  size_t used = 0;
  const auto take = [&used](size_t count, size_t size) {
    const size_t begin = used;
    used = AlignUp(used + count * size, kArrayAlignment);
    return begin;
  };
  Offsets at;
  at.counts = take(1, sizeof(PlanCounts));
  at.tiles = take(capacity.tiles, sizeof(Tile));
  at.spans = take(capacity.spans, sizeof(Span));
  at.intervals = take(capacity.intervals, sizeof(Interval));
  at.biases = take(capacity.biases, sizeof(Bias));
  at.items = take(capacity.items, sizeof(Item));
  at.merges = take(capacity.merges, sizeof(Merge));
  at.sources = take(capacity.sources, sizeof(SourceSlots));
  at.slot_rows = take(capacity.slot_rows, sizeof(int32_t));
  at.valid = take(capacity.valid_words, sizeof(uint64_t));
  at.end = used;
  return at;
}

template <typename T>
void CopyArray(std::span<const T> from, std::byte* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
}

bool KeptAsRows(const SlotMap& map) { return map.slots > 0 && map.runs > 0; }

// The rows of one source's slots; -1 where no run has one.
void FillSlotRows(const Plan& plan, const SlotMap& map, int32_t* rows) {
  std::fill_n(rows, map.slots, -1);
  for (int r = 0; r < map.runs; ++r) {
    const SlotRun& run = plan.runs[map.run0 + r];
    for (int i = 0; i < run.rows; ++i) rows[run.slot0 + i] = run.row0 + i * run.row_step;
  }
}

}  // namespace

PlanCapacity CapacityOf(const Plan& plan) {
  PlanCapacity capacity;
  capacity.tiles = static_cast<int32_t>(plan.tiles.size());
  capacity.spans = static_cast<int32_t>(plan.spans.size());
  capacity.intervals = static_cast<int32_t>(plan.intervals.size());
  capacity.biases = static_cast<int32_t>(plan.biases.size());
  capacity.items = static_cast<int32_t>(plan.items.size());
  capacity.merges = static_cast<int32_t>(plan.merges.size());
  capacity.sources = static_cast<int32_t>(plan.sources.size());
  capacity.valid_words = static_cast<int32_t>(plan.valid.size());
  capacity.partial_slots = plan.partial_slots;
  for (const SlotMap& map : plan.sources) {
    if (KeptAsRows(map)) capacity.slot_rows += map.slots;
  }
  return capacity;
}

PlanCapacity RoundedUp(PlanCapacity capacity) {
  for (int32_t* count : {&capacity.tiles, &capacity.spans, &capacity.intervals, &capacity.biases,
                         &capacity.items, &capacity.merges, &capacity.sources, &capacity.slot_rows,
                         &capacity.valid_words, &capacity.partial_slots}) {
    *count = *count == 0 ? 0 : static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(*count)));
  }
  return capacity;
}

bool Fits(const PlanCapacity& need, const PlanCapacity& room) {
  return need.tiles <= room.tiles && need.spans <= room.spans && need.intervals <= room.intervals &&
         need.biases <= room.biases && need.items <= room.items && need.merges <= room.merges &&
         need.sources <= room.sources && need.slot_rows <= room.slot_rows &&
         need.valid_words <= room.valid_words && need.partial_slots <= room.partial_slots;
}

size_t ImageBytes(const PlanCapacity& capacity) { return OffsetsOf(capacity).end; }

void WriteImage(const Plan& plan, const PlanCapacity& capacity, void* image) {
  KERNEL_CHECK(Fits(CapacityOf(plan), capacity));
  const Offsets at = OffsetsOf(capacity);
  auto* base = static_cast<std::byte*>(image);
  const PlanCounts counts{static_cast<int32_t>(plan.tiles.size()),
                          static_cast<int32_t>(plan.items.size()),
                          static_cast<int32_t>(plan.merges.size()), 0};
  std::memcpy(base + at.counts, &counts, sizeof(counts));
  CopyArray<Tile>(plan.tiles, base + at.tiles);
  CopyArray<Span>(plan.spans, base + at.spans);
  CopyArray<Interval>(plan.intervals, base + at.intervals);
  CopyArray<Bias>(plan.biases, base + at.biases);
  CopyArray<Item>(plan.items, base + at.items);
  CopyArray<Merge>(plan.merges, base + at.merges);
  CopyArray<uint64_t>(plan.valid, base + at.valid);
  auto* sources = reinterpret_cast<SourceSlots*>(base + at.sources);
  auto* slot_rows = reinterpret_cast<int32_t*>(base + at.slot_rows);
  int32_t used = 0;
  for (size_t s = 0; s < plan.sources.size(); ++s) {
    const SlotMap& map = plan.sources[s];
    sources[s] = {-1, map.valid0, map.slots, 0};
    if (!KeptAsRows(map)) continue;
    sources[s].slot_row0 = used;
    FillSlotRows(plan, map, slot_rows + used);
    used += map.slots;
  }
}

PlanView ViewImage(const PlanCapacity& capacity, const void* image) {
  const Offsets at = OffsetsOf(capacity);
  const auto* base = static_cast<const std::byte*>(image);
  PlanView view;
  view.counts = reinterpret_cast<const PlanCounts*>(base + at.counts);
  view.tiles = reinterpret_cast<const Tile*>(base + at.tiles);
  view.spans = reinterpret_cast<const Span*>(base + at.spans);
  view.intervals = reinterpret_cast<const Interval*>(base + at.intervals);
  view.biases = reinterpret_cast<const Bias*>(base + at.biases);
  view.items = reinterpret_cast<const Item*>(base + at.items);
  view.merges = reinterpret_cast<const Merge*>(base + at.merges);
  view.sources = reinterpret_cast<const SourceSlots*>(base + at.sources);
  view.slot_rows = reinterpret_cast<const int32_t*>(base + at.slot_rows);
  view.valid = reinterpret_cast<const uint64_t*>(base + at.valid);
  return view;
}

}  // namespace longview::kernels::cuda
