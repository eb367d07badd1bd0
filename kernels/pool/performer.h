// Performer's attention with positive random features (Choromanski et al. 2021, the softmax kernel
// FAVOR+), as Vision Longformer's `performer` computes it:
//
//   phi(x)_i = m^-1/2 (exp(c x.W_i - c^2 |x|^2 / 2 - top) + 1e-4),   c = width^-1/4
//   out_t    = phi(q_t) (sum_s phi(k_s)^T v_s) / (phi(q_t) . sum_s phi(k_s))
//
// `top` is the largest c x.W_i of the query alone; for keys the largest over the heads, tokens and
// features of one image, so that an image's result does not depend on its batch mates.
// Every sum runs over the tokens in order. Thread-safe; all memory is the caller's.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/parallel.h"
#include "kernels/base/workspace.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels {

struct PerformerCall {
  // [T, heads, width] each of `dtype`, heads side by side; strides of rows in elements.
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;
  DType dtype = DType::kFloat32;
  int64_t row_stride = 0;  // Stride of q, k and v.
  int64_t out_row_stride = 0;
  int heads = 1;
  int width = 1;
  int features = 1;                   // m.
  const float* projection = nullptr;  // W, [m, width].
  std::span<const int32_t> offsets;   // Image i is rows [offsets[i], offsets[i + 1]).
};

// Exact, pure.
WorkspaceBytes MeasurePerformer(const PerformerCall& call);

// REQUIRES: `workspace` holds MeasurePerformer(call) for pool.threads() threads.
void RunPerformer(const PerformerCall& call, const Workspace& workspace, const ParallelFor& pool);

// Reference of RunPerformer in double precision, one thread, without workspace.
void RunPerformerRef(const PerformerCall& call);

}  // namespace longview::kernels
