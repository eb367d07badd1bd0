// Long-short attention over one large map, slice by slice. The bits of map tokens are those of the
// map as a whole; class rows add up in another order.
//
//   Weigh          scores of all tokens become weights
//   Pool ...       keys and values of every slice's queries, in order, are added to the landmarks
//   EndLandmarks
//   BeginClass     with class tokens
//   Attend ...     every slice, in order, with the rows it loads
//   EndClass       with class tokens
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/span/executor.h"
#include "models/feature_maps/map_slices.h"
#include "models/layers/open_rows.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

// Rows of a model. "T" is an element of the compute type; C channels, h heads, r landmarks.
struct LongShortSliceRows {
  std::byte* qkv = nullptr;        // T [slice rows, 3C]: class tokens, then what a slice loads.
  std::byte* z = nullptr;          // T [g + tokens, C], written from the first Attend on.
  float* weights = nullptr;        // [tokens, h r] the projection's scores; may share z's memory.
  float* value_weights = nullptr;  // [tokens, h r], where values have their own projection.
  std::byte* workspace = nullptr;  // SliceWorkspace of every shape's plan
};

// Landmarks, and open sums of class rows.
struct SliceScratch {
  float* pooled = nullptr;         // [2, h r, C / h]
  std::byte* projected = nullptr;  // T [r, 2C]: keys, then values.
  float* thread_rows = nullptr;    // [threads, C]
  OpenRowsBuffers class_rows;
};
// `rows`: the most of a slice.
SliceScratch CarveSliceScratch(const LongShortPattern& pattern, const ComputeContext& context,
                               int64_t rows, Carver& carver);

// Attention's workspace for one shape of a map's slices.
size_t SliceWorkspace(const LongShortPattern& pattern, const LongShortPlan& plan,
                      const ComputeContext& context);

// One image in one block. Used by one thread; computes on the pool's. Borrows its arguments.
class SlicedAttention {
 public:
  SlicedAttention(const LongShortPattern& pattern, const LongShortMap& map,
                  const ComputeContext& context, const LongShortSliceRows& rows,
                  const SliceScratch& scratch);
  SlicedAttention(const SlicedAttention&) = delete;

  void Weigh();
  // `qkv`: T [count, 3C] of tokens from rank `begin` on; keys and values are read.
  void Pool(std::byte* qkv, int64_t begin, int64_t count);
  // `norm` may be null: landmarks as they are.
  void EndLandmarks(const Norm* norm);
  void BeginClass();
  void Attend(const LongShortSlice& slice, const LongShortPlan& plan,
              std::span<const kernels::Table> tables);
  void EndClass() { class_rows_.Finish(rows_.z); }

 private:
  const LongShortPattern& pattern_;
  const LongShortMap& map_;
  const ComputeContext& context_;
  const LongShortSliceRows rows_;
  const SliceScratch scratch_;
  OpenRows class_rows_;
};

}  // namespace longview::models
