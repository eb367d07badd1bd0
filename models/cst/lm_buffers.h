// The buffers of one pass of the language model: sized from its layout, carved out of one block,
// reused by every layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/span/executor.h"
#include "models/cst/config.h"
#include "models/cst/weights.h"
#include "models/dense/scratch.h"
#include "models/layers/compute_context.h"

namespace longview::models {

// "T" is an element of the compute type. Inputs of linears hold a panel more than their rows,
// so that a last panel may read past them.
struct CstBuffers {
  float* x = nullptr;  // [rows + panel, D] residual stream.
  // T [rows + panel, D] what attention reads; post-norm in fp32: x itself.
  std::byte* input = nullptr;
  std::byte* embedded = nullptr;      // T [rows + panel, D_e], where D_e is not D.
  std::byte* qkv = nullptr;           // T [rows, 3D]
  std::byte* z = nullptr;             // T [rows + panel, D] attention's output.
  float* pooled = nullptr;            // [slices + panel, D] slice embeddings.
  std::byte* slice_input = nullptr;   // T [slices + panel, D] the same; fp32: `pooled` itself.
  std::byte* slice_tokens = nullptr;  // T [slices + panel, L D]; slice_pooling `linear`.
  std::byte* slice_qkv = nullptr;     // T [slices, 3D]
  std::byte* slice_z = nullptr;       // T [slices, D]
  float* slice_sum = nullptr;         // [slices, D] the same; fp32: `slice_z` itself.
  float* thread_rows = nullptr;       // [threads, thread_row_floats]
  std::byte* workspace = nullptr;     // Of the executor.
};

struct CstSizes {
  int64_t rows = 0;
  int64_t slices = 0;
  size_t workspace = 0;
};

CstBuffers CarveCstBuffers(const CstContext& context, const CstSizes& sizes, Carver& carver);

// Zeros behind the inputs of linears. Last panels read them: their values never matter, but they
// must not be numbers that slow arithmetic down.
void ClearTails(const CstContext& context, const CstSizes& sizes, const CstBuffers& buffers);

// Scratch of one thread: an embedding's parts.
int64_t ThreadRowFloats(const CstConfig& config);

// A layer's attention over the buffers. `layer` may be null: then only strides are set, which is
// what measuring needs. Views into itself: not copied.
struct CstCall {
  CstCall() = default;
  CstCall(const CstCall&) = delete;
  CstCall& operator=(const CstCall&) = delete;

  kernels::Call call;
  std::vector<kernels::Source> sources;
  std::vector<kernels::Table> tables;
};
void MakeTokenCall(const CstContext& context, const CstLayer* layer, const CstBuffers& buffers,
                   CstCall& call);
void MakeSliceCall(const CstContext& context, const CstBuffers& buffers, CstCall& call);

}  // namespace longview::models
