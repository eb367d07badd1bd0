// The buffers of one encoder batch: sized from its plans, carved out of one block, reused by
// every layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/span/executor.h"
#include "models/dense/scratch.h"
#include "models/layers/compute_context.h"
#include "models/longformer/config.h"
#include "models/longformer/layer_plan.h"
#include "models/longformer/weights.h"

namespace longview::models {

using EncoderContext = ModelContext<LongformerConfig, LongformerWeights>;

// "T" is an element of the compute type. Inputs of linears hold a panel more than their rows,
// so that a last panel may read past them.
struct EncoderBuffers {
  float* x = nullptr;                   // [rows + panel, H] residual stream.
  std::byte* input = nullptr;           // T [rows + panel, H], x rounded; x itself for fp32.
  std::byte* qkv = nullptr;             // T [rows, 3H]
  std::byte* z = nullptr;               // T [rows + panel, H] attention's output, before: scratch.
  std::byte* queries = nullptr;         // T [outputs, H], last layer only.
  std::byte* global_keys = nullptr;     // T [global key rows, 2H]
  float* global_rows = nullptr;         // [global rows, H] projected queries.
  std::byte* global_queries = nullptr;  // T [global rows + panel, H]
  std::byte* global_out = nullptr;      // T [global rows, H]
  float* fold_vectors = nullptr;        // [columns, H], columns = A * global rows of a sequence.
  float* fold_scores = nullptr;         // [tokens, columns]
  float* fold_means = nullptr;          // [columns, H]
  float* embedding_rows = nullptr;      // [threads, 3, H]
  std::byte* workspace = nullptr;       // Executor and segment pool, in turn.
};

// Maxima over the plans of a batch.
struct EncoderSizes {
  int64_t rows = 0;
  int64_t subset_outputs = 0;
  int64_t global_rows = 0;
  int64_t global_key_rows = 0;
  int64_t fold_columns = 0;
  int64_t fold_scores = 0;  // Tokens times columns.
  size_t workspace = 0;

  void Include(const EncoderContext& context, const LayerPlan& plan);
};

EncoderBuffers CarveBuffers(const EncoderContext& context, const EncoderSizes& sizes,
                            Carver& carver);

// Calls over the buffers. `sources` is storage for the call's list.
kernels::Call BandCall(const EncoderContext& context, const LayerPlan& plan,
                       const EncoderBuffers& buffers, std::vector<kernels::Source>& sources);
kernels::Call GlobalCall(const EncoderContext& context, const EncoderBuffers& buffers,
                         std::vector<kernels::Source>& sources);

}  // namespace longview::models
