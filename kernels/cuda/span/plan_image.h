// A plan as one block of bytes: what is uploaded once per batch and read by every layer's kernels.
//
// The arrays of kernels::Plan go over as they are, one behind the other. One thing is worked out
// before: which row fills a slot, as a table, so that no kernel searches runs.
//
// Offsets come from a *capacity*, counts from the image itself: a graph recorded once keeps its
// addresses while plans of the same capacity come and go.
//
// Stateless functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/span/plan.h"

namespace longview::kernels::cuda {

// How many of each a block of bytes has room for.
struct PlanCapacity {
  int32_t tiles = 0;
  int32_t spans = 0;
  int32_t intervals = 0;
  int32_t biases = 0;
  int32_t items = 0;
  int32_t merges = 0;
  int32_t sources = 0;
  int32_t slot_rows = 0;
  int32_t valid_words = 0;
  int32_t partial_slots = 0;  // Slots of the state memory beside the image.

  bool operator==(const PlanCapacity&) const = default;
};

PlanCapacity CapacityOf(const Plan& plan);

// Every count up to a power of two: plans of neighbouring steps share it.
PlanCapacity RoundedUp(PlanCapacity capacity);

bool Fits(const PlanCapacity& need, const PlanCapacity& room);

// The facts about one source's slots that a kernel needs.
struct SourceSlots {
  int32_t slot_row0;  // Slot j is row slot_rows[slot_row0 + j], -1 = none. -1: not kept as rows.
  int32_t valid0;     // First word of the validity bitmap, see SlotMap.
  int32_t slots;      // Size of the grid, see SlotMap.
  int32_t unused;
};

// How much of the capacity is in use; first in the image.
struct PlanCounts {
  int32_t tiles;
  int32_t items;
  int32_t merges;
  int32_t unused;
};

// The arrays of an image, on either side. Handed to kernels by value.
struct PlanView {
  const PlanCounts* counts;
  const Tile* tiles;
  const Span* spans;
  const Interval* intervals;
  const Bias* biases;
  const Item* items;
  const Merge* merges;
  const SourceSlots* sources;
  const int32_t* slot_rows;
  const uint64_t* valid;
};

// Bytes of an image of this capacity.
size_t ImageBytes(const PlanCapacity& capacity);

// Writes the image to host memory, 16-byte aligned. Bytes beyond the counts are left as they are.
// REQUIRES: the plan fits.
void WriteImage(const Plan& plan, const PlanCapacity& capacity, void* image);

// The arrays of an image that lies at `image`, in host or device memory.
PlanView ViewImage(const PlanCapacity& capacity, const void* image);

}  // namespace longview::kernels::cuda
