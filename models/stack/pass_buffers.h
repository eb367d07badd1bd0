// The buffers of one pass: sized from its layout, carved out of one block, reused by every layer.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/span/executor.h"
#include "models/dense/scratch.h"
#include "models/stack/context.h"
#include "models/stack/pass_layout.h"

namespace longview::models {

// "T" is an element of the compute type, P a panel more than the rows, so that a last panel may
// read past them.
struct StackBuffers {
  float* x = nullptr;                // [rows + P, H] residual stream.
  std::byte* input = nullptr;        // T [rows + P, H], x rounded; x itself for fp32.
  std::byte* qkv = nullptr;          // T [rows, 3H]; then queries to documents, T [rows, H].
  std::byte* z = nullptr;            // T [rows + P, H] attention's output.
  std::byte* logit_input = nullptr;  // T [wanted + P, H]
  // Decoding through second packs: results of a product, and T [decode rows, I].
  std::byte* products = nullptr;
  std::byte* expanded = nullptr;
  float* zeros = nullptr;           // [H]
  float* embedding_rows = nullptr;  // [threads, 2, H]
  std::byte* workspace = nullptr;   // The executor's memory.
};

// Two passes over one Carver make measured sizes exact. `workspace`: bytes of the executor's.
StackBuffers CarveStackBuffers(const StackContext& context, const StackPassLayout& layout,
                               size_t workspace, Carver& carver);

// One attention of one layer. Owns the lists that the call borrows.
struct StackCall {
  kernels::Call call;
  std::vector<kernels::Source> sources;
  std::vector<kernels::Table> tables;
};

// Self-attention of a group. `offsets`: sequence offsets by which the cache is addressed with
// absolute slots. `step` null: for measuring only.
void MakeSelfCall(const StackContext& context, int layer, const StackGroup& group,
                  const StackBuffers& buffers, const kernels::CacheStep* step,
                  std::span<const int32_t> offsets, StackCall& result);

// Attention of all rows to their documents. `table` null: for measuring only.
void MakeCrossCall(const StackContext& context, int layer, const StackBuffers& buffers,
                   const kernels::CacheTable* table, StackCall& result);

// Largest executor workspace of the layout.
size_t StackWorkspace(const StackContext& context, const StackPassLayout& layout);

}  // namespace longview::models
