// Arguments of operations on segments of generating sequences, whose projected keys and values are
// made as tokens come (Zhu et al. 2021, section 3.2), and on tables of relative positions. Plain
// values for ops.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cache/projection_cache.h"
#include "kernels/cuda/pool/pool_api.h"
#include "kernels/span/executor.h"

namespace longview::models {

// Rows of a forward that belong to one segment of one sequence.
struct SegmentPiece {
  int32_t begin = 0, end = 0;                        // Rows.
  bool resumes = false;                              // The segment was begun in an earlier forward.
  bool closes = false;                               // The piece ends it.
  bool last = false;                                 // No piece of the sequence follows.
  const kernels::CacheSequence* sequence = nullptr;  // Keeps the sums of a segment that goes on.
};

// Staged pieces, in the order of rows. Borrowed.
struct PiecesRef {
  std::span<const SegmentPiece> pieces;
  int64_t closing = 0;                             // Number of those that end their segments.
  const kernels::cuda::PoolRun* device = nullptr;  // On a device: those first, then the others.
};

// One layer's table of positions, rows that queries are multiplied with.
struct PositionTable {
  kernels::Table rows;  // Dotted: T [heads, entries, dim], with what is added to the query.
  // The same on the host, packed for products of few rows: `packed` entries each, a RowWeight of
  // `pack_type` per head, one behind the other.
  std::span<const std::byte* const> packs;
  int64_t packed = 0;
  kernels::DType pack_type = kernels::DType::kFloat32;
};

}  // namespace longview::models
