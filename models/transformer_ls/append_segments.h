// Segments of generating sequences, whose projected keys and values are made as tokens come (Zhu et
// al. 2021, section 3.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cache/projection_cache.h"
#include "kernels/cuda/pool/pool_api.h"
#include "models/ops/backend.h"
#include "models/ops/cache_rows.h"
#include "models/ops/long_short.h"

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
// `pieces` outlive the forward; `cache` null: they are counted.
PiecesRef StagePieces(Backend& backend, const kernels::ProjectionCache* cache,
                      std::span<const SegmentPiece> pieces);

namespace ops {

// Rows of segments that join their sums, and segments that end: rank k of all heads side by side is
// the mean of the segment's keys, and values, weighted by softmax(scores), then a LayerNorm.
struct AppendSegments {
  const PiecesRef& pieces;
  int rank;
  LongShortRows from;  // Scores; own_keys and own_values are averaged.
  Rows hidden;         // [rows, width] fp32, averaged too; not given: not.
  Rows hidden_means;   // T [closing * rank, width] for the averages of `hidden`.
  const NormWeight& norm;
  const StripRef& strip;    // Strip of the landmarks; its cache keeps the sums.
  const PlacesRef& places;  // [closing * rank] places of landmarks in the strip.

  int64_t width() const { return from.q.width; }
  int dim() const { return static_cast<int>(width() / strip.heads); }
  int columns() const { return strip.heads * rank; }
  // Columns of a state of sums: those of hidden states come behind those of keys and values.
  int state_columns() const { return hidden ? 2 * columns() : columns(); }
  size_t StateBytes() const;

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// Columns [width, 3 width) of in W^T + b, a key and a value, are normalised; row i goes to
// places[i].
struct StoreProjected {
  const Weight& weight;
  const NormWeight& norm;
  Rows in;
  const StripRef& strip;
  const PlacesRef& places;

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
