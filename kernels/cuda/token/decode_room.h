// How large a decode step is laid out: in few sizes, each a little more than a step needs, so that
// a recorded step (graph_cache.h) serves all steps of its size.
//
// Pure.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cache/cache_shape.h"
#include "kernels/cuda/graph_cache.h"
#include "kernels/cuda/span/plan_image.h"
#include "kernels/cuda/token/decode_shape.h"
#include "kernels/span/plan.h"

namespace longview::kernels::cuda {

// The sizes from which every launch and every address of a step follows.
struct DecodeRoom {
  int32_t rows = 0;       // BatchBucket of its sequences.
  int32_t pages = 0;      // Entries of one sequence's table of segments, at most; a power of two.
  int32_t closing = 0;    // Most rows that end a segment.
  PlanCapacity capacity;  // Rounded up.

  GraphKey key() const { return {rows, pages, closing, capacity}; }
};

// A step's attention and its room.
struct DecodePlan {
  Plan plan;
  DecodeRoom room;
};

// One query of each sequence, row i at positions[i], over absolute slots. Biases are Added: row i
// reads entries i * window and i * room.pages on of the window's and the segments' table.
DecodePlan PlanDecode(const DecodeShape& shape, std::span<const int32_t> positions);

// Enough for any step of up to `sequences` sequences of up to `tokens` tokens.
DecodeRoom MostRoom(const DecodeShape& shape, int sequences, int32_t tokens);

// Entries of a strip's block table.
int64_t TableBlocks(const CacheShape& cache, const DecodeRoom& room, int strip);

}  // namespace longview::kernels::cuda
