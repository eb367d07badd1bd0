#include "kernels/linear_attention/running_outer.h"

#include <algorithm>
#include <atomic>

#include "kernels/base/check.h"
#include "kernels/linear_attention/running_outer_ops.h"

namespace longview::kernels {
namespace {

constexpr int kLanes = 16;

int Lanes(int count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Floats of one head's K; V follows it.
int64_t KeyFloats(int width, int rows) { return int64_t{width} * Lanes(rows); }
int64_t HeadFloats(int width, int rows) {
  return KeyFloats(width, rows) + int64_t{rows} * Lanes(width);
}

// Null: only the definition runs here.
OuterHeadKernel KernelOf(Isa isa) {
  if (isa >= Isa::kAvx512) return RunOuterHeadAvx512;
  return isa == Isa::kAvx2 ? RunOuterHeadAvx2 : nullptr;
}

OuterHead HeadOf(const OuterCall& call, const OuterSequence& sequence, int head) {
  const int64_t column = int64_t{head} * call.width;
  const int64_t in = sequence.row0 * call.row_stride + column;
  OuterHead one;
  one.q = call.q + in;
  one.k = call.k + in;
  one.v = call.v + in;
  one.g = call.g + in;
  one.row_stride = call.row_stride;
  one.out = call.out + sequence.row0 * call.out_stride + column;
  one.out_stride = call.out_stride;
  one.tokens = sequence.tokens;
  one.before = sequence.before;
  one.width = call.width;
  one.rows = sequence.rows;
  one.width_lanes = Lanes(call.width);
  one.row_lanes = Lanes(sequence.rows);
  one.scale = call.scale;
  one.activation = static_cast<int>(call.activation);
  one.packed = sequence.packed + head * KeyFloats(call.width, sequence.rows);
  one.keys = sequence.state + head * HeadFloats(call.width, sequence.rows);
  one.values = one.keys + KeyFloats(call.width, sequence.rows);
  return one;
}

}  // namespace

int64_t OuterStateFloats(int heads, int width, int rows) { return heads * HeadFloats(width, rows); }

int64_t OuterPackedFloats(int heads, int width, int rows) { return heads * KeyFloats(width, rows); }

void PackOuterRows(const float* projected, int heads, int width, int rows, float* packed) {
  const int lanes = Lanes(rows);
  std::fill_n(packed, OuterPackedFloats(heads, width, rows), 0.0f);
  for (int row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < int64_t{heads} * width; ++c) {
      packed[c * lanes + row] = projected[row * int64_t{heads} * width + c];
    }
  }
}

float OuterKeySum(const float* state, int heads, int width, int rows, int head, int channel,
                  int row) {
  KERNEL_CHECK(head < heads && channel < width && row < rows);
  return state[head * HeadFloats(width, rows) + int64_t{channel} * Lanes(rows) + row];
}

float OuterValueSum(const float* state, int heads, int width, int rows, int head, int row,
                    int channel) {
  KERNEL_CHECK(head < heads && channel < width && row < rows);
  return state[head * HeadFloats(width, rows) + KeyFloats(width, rows) +
               int64_t{row} * Lanes(width) + channel];
}

WorkspaceBytes MeasureOuter(const OuterCall& call) {
  int rows = 0;
  for (const OuterSequence& sequence : call.sequences) rows = std::max(rows, sequence.rows);
  const int64_t floats = int64_t{2} * kOuterTokens * (Lanes(rows) + Lanes(call.width));
  return {0, static_cast<size_t>(floats) * sizeof(float)};
}

void AppendOuter(const OuterCall& call, const Workspace& workspace, const ParallelFor& pool,
                 Isa isa) {
  KERNEL_CHECK(call.heads >= 1 && call.width >= 1);
  const OuterHeadKernel kernel = KernelOf(isa);
  if (kernel == nullptr) return AppendOuterRef(call);
  const auto items = static_cast<int64_t>(call.sequences.size()) * call.heads;
  std::atomic<int64_t> next{0};
  RunOnThreads(pool, [&](int thread) {
    for (int64_t i = next++; i < items; i = next++) {
      const OuterSequence& sequence = call.sequences[i / call.heads];
      KERNEL_CHECK(sequence.rows >= 1 && sequence.before >= 0);
      OuterHead head = HeadOf(call, sequence, static_cast<int>(i % call.heads));
      head.scratch =
          reinterpret_cast<float*>(workspace.thread_base + thread * workspace.thread_stride);
      kernel(head);
    }
  });
}

}  // namespace longview::kernels
