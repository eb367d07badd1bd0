// The buffers of one batch: sized from its plan, carved out of one block, reused by every layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/span/executor.h"
#include "models/dense/scratch.h"
#include "models/layers/compute_context.h"
#include "models/luna/config.h"
#include "models/luna/plan.h"
#include "models/luna/weights.h"

namespace longview::models {

using LunaContext = ModelContext<LunaConfig, LunaWeights>;

// "T" is an element of the compute type. Inputs of linears hold a panel more than their rows,
// so that a last panel may read past them.
struct LunaBuffers {
  float* x = nullptr;                 // [rows + panel, d] residual stream of tokens.
  std::byte* input = nullptr;         // T [rows + panel, d] what a layer reads.
  std::byte* projections = nullptr;   // T [rows, 3d] query, pack key, pack value; tied [rows, 2d].
  std::byte* queries = nullptr;       // T [wanted, d] of the last layer.
  std::byte* z = nullptr;             // T [rows + panel, d] unpacked context.
  float* p = nullptr;                 // [projected rows + panel, d] residual stream of P.
  std::byte* p_input = nullptr;       // T [projected rows + panel, d]
  std::byte* pack_queries = nullptr;  // T [projected rows, d]
  std::byte* packed = nullptr;        // T [projected rows + panel, d]
  std::byte* unpack_keys = nullptr;   // T [projected rows, 2d]; tied [projected rows, d].
  float* thread_rows = nullptr;       // [threads, 2, d]
  std::byte* workspace = nullptr;     // Executor.
};

struct LunaSizes {
  int64_t rows = 0, projected_rows = 0, wanted = 0;
  size_t workspace = 0;
};

LunaSizes LunaSizesOf(const LunaContext& context, const RaggedBatch& batch, const LunaPlan& plan);
LunaBuffers CarveLunaBuffers(const LunaContext& context, const LunaSizes& sizes, Carver& carver);

// Whether what layers read is a buffer of its own: pre-norm, or 16-bit.
inline bool HasOwnInput(const LunaContext& context) {
  return context.compute != Compute::kFp32 || context.config->norms == NormPlace::kPre;
}

// The calls of a layer over the buffers; `sources` is storage for the call's list.
kernels::Call LunaPackCall(const LunaContext& context, const LunaBuffers& buffers,
                           std::vector<kernels::Source>& sources);
// `wanted`: the queries are LunaBuffers::queries.
kernels::Call LunaUnpackCall(const LunaContext& context, const LunaBuffers& buffers, bool wanted,
                             std::vector<kernels::Source>& sources);

}  // namespace longview::models
