// Luna's causal attention: a fixed number of rows P that every token writes into and reads from
// (Ma et al. 2021, section 3.3, as the published code computes it). Per head, tokens t = 1, 2, ...:
//
//   a_t[r] = phi(scale g_t . P_r)                       positive, not normalised
//   K_t    = K_{t-1} + k_t^T a_t,   V_t = V_{t-1} + a_t^T v_t
//   w_t    = softmax over r of scale q_t . K_t[:, r] / t
//   out_t  = w_t V_t / t
//
// The state (K, V and t) is all that a token needs of those before it, whatever their number. The
// sums stay undivided and float.
//
// A token's bits depend on its sequence alone: every sum over tokens is one chain in their order
// and every product one chain over its channels or rows, so cutting a sequence anywhere, other
// sequences beside it and threads change nothing.
// Stateless: thread-safe as long as states differ. All memory is the caller's.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/cpu_features.h"
#include "kernels/base/parallel.h"
#include "kernels/base/workspace.h"

namespace longview::kernels {

// phi.
enum class OuterActivation {
  kSoftplusLn2,  // log2(1 + 2^x): softplus with beta = ln 2, the published models.
  kSoftplus,     // ln(1 + e^x)
  kElu1,         // x + 1 for x > 0, else e^x.
};

// The tokens that one sequence reads in a call.
struct OuterSequence {
  int64_t row0 = 0;  // First row in q, k, v, g and out.
  int64_t tokens = 0;
  int64_t before = 0;             // Tokens that the state has seen.
  int rows = 0;                   // Rows of P, at least 1.
  const float* packed = nullptr;  // PackOuterRows of the sequence's P.
  float* state = nullptr;         // OuterStateFloats; all zeros before the first token.
};

struct OuterCall {
  // [T, heads, width], heads side by side. k and v may be the same rows; the sums of keys and of
  // values then hold the same numbers, kept twice because each is read along its own axis.
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* g = nullptr;
  int64_t row_stride = 0;  // Elements, of all four.
  float* out = nullptr;    // [T, heads, width]
  int64_t out_stride = 0;
  int heads = 1;
  int width = 1;
  float scale = 1;
  OuterActivation activation = OuterActivation::kSoftplusLn2;
  std::span<const OuterSequence> sequences;
};

// Floats of a sequence's state: K and V of all heads, lanes padded to 16.
int64_t OuterStateFloats(int heads, int width, int rows);

// P of one layer as AppendOuter reads it. `projected` is [rows, heads, width], dense.
int64_t OuterPackedFloats(int heads, int width, int rows);
void PackOuterRows(const float* projected, int heads, int width, int rows, float* packed);

// Reads a state, for references and tests: K[channel, row] and V[row, channel] of one head.
float OuterKeySum(const float* state, int heads, int width, int rows, int head, int channel,
                  int row);
float OuterValueSum(const float* state, int heads, int width, int rows, int head, int row,
                    int channel);

// Exact, pure.
WorkspaceBytes MeasureOuter(const OuterCall& call);

// Reads the tokens of all sequences: advances their states, writes out.
// REQUIRES: `workspace` holds MeasureOuter(call) for pool.threads() threads.
void AppendOuter(const OuterCall& call, const Workspace& workspace, const ParallelFor& pool,
                 Isa isa);

// Reference of AppendOuter, in double precision within the call, one thread, without workspace.
void AppendOuterRef(const OuterCall& call);

}  // namespace longview::kernels
