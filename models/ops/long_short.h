// Long-short attention's projections (Zhu et al. 2021, section 3): queries, keys and values with
// norms of their own, and a sequence's keys and values projected to few landmarks.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/pool/pool_api.h"
#include "models/ops/backend.h"

namespace longview::models {

// Long-short attention (Zhu et al. 2021, section 3.2): queries, and keys and values in two forms.
struct LongShortRows {
  Rows q;                     // T [rows, d]
  Rows keys, values;          // T [rows, d] normalised.
  Rows own_keys, own_values;  // T [rows, d] as projected, of the rows behind the normalised ones.
  Rows scores;                // [normalised rows, heads * rank] fp32, of the dynamic projection.

  // Rows from `row` on, `count` of them, which decode or not.
  LongShortRows Part(int64_t row, int64_t count, bool few) const {
    LongShortRows part = *this;
    for (Rows* rows :
         {&part.q, &part.keys, &part.values, &part.own_keys, &part.own_values, &part.scores}) {
      *rows = rows->Part(row, count, few);
    }
    return part;
  }
};
// `columns`: of the dynamic projection's scores. `beside`: keys and values as projected stay beside
// the normalised ones, of every row.
LongShortRows TakeLongShort(Backend& backend, int64_t count, int64_t width, int64_t columns,
                            bool beside);

// Staged segments of rows, each pooled by itself.
struct Segments {
  std::span<const int32_t> offsets;  // One entry more than segments.
  const uint8_t* visible = nullptr;  // [rows], 0 = left out.
  // On a device: cut into pieces, which are pooled by themselves and merged in rising order.
  const kernels::cuda::PoolPiece* pieces = nullptr;  // [piece_count]
  const int32_t* piece0 = nullptr;                   // [segments + 1]
  int32_t piece_count = 0;
};
Segments StageSegments(Backend& backend, std::span<const int32_t> offsets,
                       std::span<const uint8_t> visible);

namespace ops {

// q | k | v | scores = in W^T + b. The first `normed` rows' keys and values are normalised and have
// scores; those of the rows behind stay as projected.
struct ProjectLongShort {
  const Weight& weight;
  const NormWeight& norm;
  Rows in;
  int64_t normed;
  LongShortRows out;

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// Projected keys and values of every segment: `rank` landmarks per head, each the mean of its
// segment's rows weighted by softmax(scores), heads side by side, then a LayerNorm where there is
// one. A segment's own row, where there is one, comes before its landmarks.
struct Landmarks {
  const Segments* segments = nullptr;
  LongShortRows from;
  Rows value_scores;  // Scores of values that have weights of their own; else none.
  int heads = 1;
  int rank = 0;
  const NormWeight* norm = nullptr;  // Null: none.
  bool own_rows = false;  // Row segments.offsets.back() + s of from.own_* belongs to segment s.
  Rows out;               // T [segments * landmarks, 2d], keys | values.

  int64_t sequences() const { return static_cast<int64_t>(segments->offsets.size()) - 1; }
  int64_t landmarks() const { return rank + (own_rows ? 1 : 0); }
  int64_t columns() const { return int64_t{heads} * rank; }
  int64_t width() const { return from.q.width; }

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
