// Row operations between two linears: bias, activation, residual, LayerNorm, and the
// small dot products of folded global attention. Our own code, because a row's bits may depend
// on its columns only: library activations use other instructions in a tensor's tail.
//
// Every function treats one row (or one row against a few vectors), in a fixed order of sums.
// One set per instruction set, chosen once per process. Thread-safe: pure functions.
#pragma once

#include <cstdint>

#include "models/dense/compute.h"

namespace longview::models {

// Activations by HuggingFace's names: gelu is x/2 (1 + erf(x / sqrt 2)); gelu_new,
// gelu_pytorch_tanh and gelu_fast are its tanh form (they differ in rounding only); quick_gelu is
// x / (1 + e^(-1.702 x)).
enum class Activation { kNone, kGelu, kGeluTanh, kRelu, kSilu, kTanh, kQuickGelu };

// LayerNorm with biased variance and eps inside the root; gamma and beta are [n].
struct NormWeights {
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float eps = 0;
};

struct RowKernels {
  // y = act(y + bias) in place, fp32 inside; y is [n] of the table's element type.
  void (*bias_act)(void* y, const float* bias, int64_t n, Activation act);

  // y = act(y + bias) * (gate + gate_bias) in place, fp32 inside; y and gate are [n].
  void (*bias_gate)(void* y, const float* bias, const void* gate, const float* gate_bias, int64_t n,
                    Activation act);

  // out = y + bias, where each of `heads` vectors of 2 * half columns has its halves turned against
  // each other, (a cos - b sin, b cos + a sin); cosines and sines are [half]. y may be out.
  void (*bias_rotate)(const void* y, const float* bias, const float* cosines, const float* sines,
                      int64_t heads, int64_t half, void* out);

  // out = y + bias, the same element type.
  void (*bias_copy)(const void* y, const float* bias, int64_t n, void* out);

  // out = y + bias, widened to fp32.
  void (*bias_widen)(const void* y, const float* bias, int64_t n, float* out);

  // x = LayerNorm(x + y + bias); `x` is the fp32 residual stream, updated in place; `copy`
  // receives x in the element type (skipped for fp32 or null). y may be null: zeros.
  void (*residual_norm)(float* x, const void* y, const float* bias, const NormWeights& norm,
                        int64_t n, void* copy);

  // x = LayerNorm(a + b + c), the embedding sum; `copy` as above.
  void (*sum_norm)(float* x, const float* a, const float* b, const float* c,
                   const NormWeights& norm, int64_t n, void* copy);

  // The row in the element type.
  void (*narrow)(const float* x, int64_t n, void* out);

  // x += y + bias, the residual of a model without a last norm; `copy` as in residual_norm.
  void (*residual_add)(float* x, const void* y, const float* bias, int64_t n, void* copy);

  // x += y + bias, then out = LayerNorm(x) in the element type: the residual of a pre-norm model
  // and what its next linear reads. y may be null: zeros. out is not x.
  void (*residual_prenorm)(float* x, const void* y, const float* bias, const NormWeights& norm,
                           int64_t n, void* out);

  // out = LayerNorm(y + bias), y and out of the element type.
  void (*bias_norm)(const void* y, const float* bias, const NormWeights& norm, int64_t n,
                    void* out);

  // out = LayerNorm(x) in the element type; x stays.
  void (*norm)(const float* x, const NormWeights& norm, int64_t n, void* out);

  // out = bias + sum over i < count of weights[i] * rows[i], column by column and in this order;
  // weights is [count, n], rows of the element type, null ones left out. A depthwise convolution.
  void (*weighted_rows)(const void* const* rows, const float* weights, int64_t count,
                        const float* bias, int64_t n, void* out);
};

// The best set this CPU runs, for rows of `compute`.
const RowKernels& ChooseRowKernels(Compute compute);

// Vector helpers on fp32 rows, the same choice.
struct VectorKernels {
  float (*dot)(const float* a, const float* b, int64_t n);
  // y += factor * x
  void (*add_scaled)(float* y, const float* x, float factor, int64_t n);
  // scores[c] = x . u[c] for c < columns; u is [columns, n].
  void (*dots)(const float* x, const float* u, int64_t columns, int64_t n, float* scores);
  // x[i] = exp(x[i] - shift); returns the sum, in a fixed order.
  float (*exp_sum)(float* x, float shift, int64_t n);
};

const VectorKernels& ChooseVectorKernels();

}  // namespace longview::models
