// The buffers of one batch: sized from its plans, carved out of one block, reused by every layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "kernels/span/executor.h"
#include "models/dense/scratch.h"
#include "models/layers/compute_context.h"
#include "models/transformer_ls_text/config.h"
#include "models/transformer_ls_text/plan.h"
#include "models/transformer_ls_text/weights.h"

namespace longview::models {

using LsTextContext = ModelContext<LsTextConfig, LsTextWeights>;

// "T" is an element of the compute type. Inputs of linears hold a panel more than their rows,
// so that a last panel may read past them.
struct LsTextBuffers {
  float* x = nullptr;              // [rows + panel, d] residual stream.
  std::byte* input = nullptr;      // T [rows + panel, d] what attention reads.
  std::byte* qkv = nullptr;        // T [rows, 3d]
  float* scores = nullptr;         // [tokens, h r] of the projection.
  float* pooled_keys = nullptr;    // [sequences, h r, d / h]
  float* pooled_values = nullptr;  // The same.
  std::byte* projected = nullptr;  // T [projected rows, 2d] keys and values side by side.
  std::byte* z = nullptr;          // T [rows + panel, d] attention's output.
  float* thread_rows = nullptr;    // [threads, 2, d]
  std::byte* workspace = nullptr;  // Executor and pool, in turn.
};

// Maxima over the plans of a batch.
struct LsTextSizes {
  int64_t rows = 0;
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t projected_rows = 0;
  size_t workspace = 0;

  void Include(const LsTextContext& context, const LsTextPlan& plan,
               std::span<const int32_t> offsets);
};

LsTextBuffers CarveLsTextBuffers(const LsTextContext& context, const LsTextSizes& sizes,
                                 Carver& carver);

// The calls of a layer over the buffers; `sources` and `values` are storage of the result.
kernels::Call LsTokenCall(const LsTextContext& context, const LsTextBuffers& buffers,
                          std::vector<kernels::Source>& sources);
kernels::Call LsClassCall(const LsTextContext& context, const LsTextBuffers& buffers,
                          std::vector<kernels::Source>& sources);
kernels::PoolCall LsPoolCall(const LsTextContext& context, const LsTextBuffers& buffers,
                             std::span<const int32_t> offsets,
                             std::vector<kernels::PoolValue>& values);

}  // namespace longview::models
