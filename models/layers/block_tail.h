// The rest of a transformer layer after attention, panel by panel while a panel is in cache:
//
//   post-norm:  x = LN_a(x + out(z));   x = LN_b(x + contract(act(expand(x))));   input = x
//   pre-norm:   x = x + out(z);         x = x + contract(act(expand(LN_a(x))));   input = LN_b(x)
//
// With a gate, act(expand(y)) is act(expand(y)) * gate(y).
//
// In a pre-norm model LN_b belongs to whatever reads `input` next: the next layer's attention;
// without it the layer ends with x.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/parallel.h"
#include "models/cost/stopwatch.h"
#include "models/dense/layer.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

enum class NormPlace { kPost, kPre };

struct BlockTail {
  const DenseLayer* out = nullptr;        // Null: z itself is added.
  const Norm* after_attention = nullptr;  // LN_a
  const DenseLayer* expand = nullptr;
  const DenseLayer* contract = nullptr;
  // LN_b; null: pre-norm leaves `input` as it is, post-norm copies x.
  const Norm* after_layer = nullptr;
  Activation activation = Activation::kGelu;
  NormPlace norms = NormPlace::kPost;
  const DenseLayer* gate = nullptr;  // Optional, as wide as expand.
};

// Rows of the batch. z and input are of the compute type and readable a panel past the end; input
// may be z.
struct TailRows {
  float* x = nullptr;          // [rows, H] residual stream.
  std::byte* input = nullptr;  // [rows, H]; post-norm fp32: x itself.
  std::byte* z = nullptr;      // [rows, H] attention's output.
  int64_t rows = 0;
};

// Panels that all of its layers allow.
PanelSizes SizesOf(const BlockTail& tail);

// `sizes` are panels that all of its layers allow. Throws what LibTorch throws.
void RunBlockTail(const BlockTail& tail, const TailRows& rows, PanelSizes sizes,
                  const kernels::ParallelFor& pool, RunTimes* times);

// Bytes of panel results that RunBlockTail has alive at a time.
size_t TailPanelBytes(int64_t width, int64_t expanded, Compute compute);

}  // namespace longview::models
