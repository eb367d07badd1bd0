// Calls of the attention executor and landmarks, shared by maps as a whole and maps in slices.
// Internal to models/long_short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/executor.h"
#include "models/layers/span_rows.h"
#include "models/long_short/map_attention.h"
#include "models/long_short/map_plan.h"

namespace longview::models {

// The model's rows and what is made of them here.
struct LongShortBuffers : LongShortMapRows {
  float* pooled = nullptr;         // [2, images, h r, C / h]
  std::byte* projected = nullptr;  // T [images r, 2C]: keys, then values.
  float* thread_rows = nullptr;    // [threads, C]
};

// One attention over one plan; storage of the call's sources.
class PlannedCall {
 public:
  PlannedCall(const LongShortPattern& pattern, const ComputeContext& context,
              const LongShortBuffers& buffers);
  PlannedCall(const PlannedCall&) = delete;

  const kernels::Call& Tokens(std::span<const kernels::Table> tables);
  const kernels::Call& ClassRows();

 private:
  kernels::Source Rows(const void* k, const void* v, int64_t row_stride) const {
    return RowsSource(k, v, context_.compute, row_stride, pattern_.head_dim());
  }
  kernels::Source Fresh() const;

  const LongShortPattern& pattern_;
  const ComputeContext& context_;
  const LongShortBuffers& buffers_;
  std::vector<kernels::Source> sources_;
  kernels::Call call_;
};

// Rows of the landmarks' source, of pooled keys and values: heads side by side, normalised together
// unless `norm` is null.
void PlaceLandmarks(const LongShortPattern& pattern, int64_t images, const Norm* norm,
                    const ComputeContext& context, const LongShortBuffers& buffers);

}  // namespace longview::models
