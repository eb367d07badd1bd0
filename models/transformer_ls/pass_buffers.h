// The buffers of one pass: sized from its layout, carved out of one block, reused by every layer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/span/executor.h"
#include "models/dense/row_linear.h"
#include "models/dense/scratch.h"
#include "models/transformer_ls/context.h"
#include "models/transformer_ls/pass_layout.h"

namespace longview::models {

// "T" is an element of the compute type, P a panel more than the rows, so that a last panel may
// read past them. C = h * r.
struct LsBuffers {
  float* zeros = nullptr;       // [d]
  float* x = nullptr;           // [rows + P, d] residual stream, normalised where pre_ln.
  std::byte* input = nullptr;   // T [rows + P, d], x rounded; x itself for fp32.
  std::byte* qkv = nullptr;     // T [rows, 3d], keys and values as projected.
  std::byte* keys = nullptr;    // T [rows, d], of the window.
  std::byte* values = nullptr;  // T [rows, d]
  float* scores = nullptr;      // [rows, C] of dconv_1.
  std::byte* z = nullptr;       // T [rows + P, d] attention's output.
  // Pooling, one state per piece; finished segments' keys and values [segments, r, d].
  std::byte* states = nullptr;
  float* means = nullptr;      // [threads, 2, C, dh]
  float* page_keys = nullptr;  // Late form.
  float* page_values = nullptr;
  std::byte* hidden = nullptr;  // T [segments * r + P, d] averages of hidden states; kBlocks.
  float* early_keys = nullptr;
  float* early_values = nullptr;
  // Decode: queries with r_r_bias, without [2, runs, d], and their scores [h, entries].
  float* score_queries = nullptr;
  float* window_scores = nullptr;
  float* segment_scores = nullptr;
  std::byte* logit_input = nullptr;  // T [wanted + P, d]
  std::byte* workspace = nullptr;    // Of the executor.
  // Decode: results of row products, read by the next one while it writes the other.
  std::array<std::byte*, 2> products = {};
};

// Bytes of one piece's pooling state.
size_t PieceStateBytes(const LsLmConfig& config);

// Two passes over one Carver make measured sizes exact. `workspace`: bytes of the executor's.
LsBuffers CarveLsBuffers(const LsContext& context, const LsPassLayout& layout, size_t workspace,
                         Carver& carver);

// One group's attention in one layer. Owns the lists that the call borrows.
struct LsCall {
  kernels::Call call;
  std::vector<kernels::Source> sources;
  std::vector<kernels::Table> tables;
};

// `absolute[strip]`: sequence offsets by which cached sources are addressed with absolute slots;
// `zeros`: a zero per run. `step` null: for measuring only.
void MakeCall(const LsContext& context, int layer, const LsPassLayout& layout, const LsGroup& group,
              const LsBuffers& buffers, const kernels::CacheStep* step,
              std::span<const std::vector<int32_t>> absolute, const std::vector<int32_t>& zeros,
              LsCall& result);

// Largest executor workspace of the layout's groups.
size_t AttentionWorkspace(const LsContext& context, const LsPassLayout& layout);

}  // namespace longview::models
