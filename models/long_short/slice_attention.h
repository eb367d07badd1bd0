// Long-short attention over one large map, slice by slice. The bits of map tokens are those of
// RunLongShort; class rows add up in another order.
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
#include <optional>
#include <span>

#include "models/layers/open_rows.h"
#include "models/long_short/map_slices.h"
#include "models/long_short/planned_call.h"

namespace longview::models {

// What a model hands over. "T" is an element of the compute type; C channels, h heads, r landmarks.
struct LongShortSliceRows {
  std::byte* qkv = nullptr;        // T [slice rows, 3C]: class tokens, then what a slice loads.
  std::byte* z = nullptr;          // T [g + tokens, C], written from the first Attend on.
  float* weights = nullptr;        // [tokens, h r] the projection's scores; may share z's memory.
  float* value_weights = nullptr;  // The same where values have a projection of their own.
  std::byte* scratch = nullptr;    // LongShortSliceBytes
  std::byte* workspace = nullptr;  // LongShortWorkspace of every shape's plan
};

// Of landmarks and open sums. `rows`: the most of a slice.
size_t LongShortSliceBytes(const LongShortPattern& pattern, const ComputeContext& context,
                           int64_t rows);

// Attention's workspace for one shape of a map's slices.
size_t LongShortSliceWorkspace(const LongShortPattern& pattern, const LongShortPlan& plan,
                               const ComputeContext& context);

// One image in one block. Used by one thread; computes on the pool's. Borrows its arguments.
class SlicedAttention {
 public:
  SlicedAttention(const LongShortPattern& pattern, const LongShortMap& map,
                  const ComputeContext& context, const LongShortSliceRows& rows);
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
  LongShortBuffers buffers_;
  OpenRows class_rows_;
};

}  // namespace longview::models
