#include "kernels/pool/segment_pool.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/base/bfloat16.h"
#include "kernels/base/check.h"
#include "kernels/pool/column_weights.h"
#include "kernels/pool/weighted_sum.h"

namespace longview::kernels {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

int Segments(const PoolCall& call) { return static_cast<int>(call.offsets.size()) - 1; }
int Heads(const PoolCall& call) { return call.columns / call.columns_per_head; }
int64_t Tokens(const PoolCall& call) { return call.offsets.back() - call.offsets.front(); }
bool Visible(const PoolCall& call, int64_t t) {
  return call.visible == nullptr || call.visible[t] != 0;
}

void CheckCall(const PoolCall& call) {
  KERNEL_CHECK(!call.offsets.empty());
  KERNEL_CHECK(call.columns >= 1 && call.columns_per_head >= 1);
  KERNEL_CHECK(call.columns % call.columns_per_head == 0);
  KERNEL_CHECK(!call.values.empty() && call.values.size() <= 2);
  for (size_t i = 1; i < call.offsets.size(); ++i) {
    KERNEL_CHECK(call.offsets[i] >= call.offsets[i - 1]);
  }
}

// Hands the numbers 0 .. count - 1 out to the pool's threads.
template <typename Body>
void ForEach(const ParallelFor& pool, int64_t count, Body&& body) {
  std::atomic<int64_t> next{0};
  RunOnThreads(pool, [&](int) {
    for (int64_t i = next++; i < count; i = next++) body(i);
  });
}

// Weights of columns [first, first + columns) of one segment, divided by their sums: [T, C] from
// the first row on.
void WeighSome(const PoolCall& call, int segment, int first, int columns, float* weights) {
  const int64_t begin = call.offsets[segment];
  ColumnWeights request;
  request.scores = call.scores + begin * call.score_stride + first;
  request.score_stride = call.score_stride;
  request.visible = call.visible == nullptr ? nullptr : call.visible + begin;
  request.tokens = call.offsets[segment + 1] - begin;
  request.columns = columns;
  request.weights = weights + (begin - call.offsets.front()) * call.columns + first;
  request.weight_stride = call.columns;
  WeighColumns(request);
}

// Tokens whose weights and values stay in cache while a head's columns are summed.
constexpr int64_t kSumTokens = 64;

// The sums of one head's columns over kSumChannels channels of one value; with `continues`, on top
// of those in value.out. Tokens are taken in order, so a sum has the bits of one chain over all.
void SumChannels(const PoolCall& call, const PoolValue& value, int segment, int head, int channel,
                 const float* weights, bool continues) {
  const int64_t begin = call.offsets[segment];
  const int64_t tokens = call.offsets[segment + 1] - begin;
  WeightedSum request;
  request.weight_stride = call.columns;
  request.dtype = value.dtype;
  request.value_stride = value.row_stride;
  request.channels = std::min(kSumChannels, value.width - channel);
  alignas(kAlignment) float sums[kSumColumns * kSumChannels] = {};
  request.sums = sums;
  int64_t token = 0;
  do {
    const int64_t first = (begin + token) * value.row_stride + head * value.head_stride + channel;
    request.values = static_cast<const std::byte*>(value.data) + first * SizeOf(value.dtype);
    request.tokens = std::min(kSumTokens, tokens - token);
    request.continues = continues || token > 0;
    for (int j = 0; j < call.columns_per_head; j += kSumColumns) {
      const int c = head * call.columns_per_head + j;
      request.columns = std::min(kSumColumns, call.columns_per_head - j);
      request.weights = weights + (begin + token - call.offsets.front()) * call.columns + c;
      float* const out =
          value.out + (static_cast<int64_t>(segment) * call.columns + c) * value.width + channel;
      for (int k = 0; request.continues && k < request.columns; ++k) {
        std::copy_n(out + int64_t{k} * value.width, request.channels, sums + k * kSumChannels);
      }
      SumWeighted(request);
      for (int k = 0; k < request.columns; ++k) {
        std::copy_n(sums + k * kSumChannels, request.channels, out + int64_t{k} * value.width);
      }
    }
    token += kSumTokens;
  } while (token < tokens);
}

void SumSegments(const PoolCall& call, const float* weights, bool continues,
                 const ParallelFor& pool) {
  for (const PoolValue& value : call.values) {
    const int chunks = (value.width + kSumChannels - 1) / kSumChannels;
    const int64_t per_segment = int64_t{Heads(call)} * chunks;
    ForEach(pool, Segments(call) * per_segment, [&](int64_t i) {
      const int64_t rest = i % per_segment;
      SumChannels(call, value, static_cast<int>(i / per_segment), static_cast<int>(rest / chunks),
                  static_cast<int>(rest % chunks) * kSumChannels, weights, continues);
    });
  }
}

void AppendColumn(const PoolCall& call, int segment, int c, const PoolState& state) {
  for (int64_t t = call.offsets[segment]; t < call.offsets[segment + 1]; ++t) {
    if (!Visible(call, t)) continue;
    const float score = call.scores[t * call.score_stride + c];
    const float top = std::max(state.m[c], score);
    const float keep = state.m[c] == kNothing ? 0.0f : std::exp(state.m[c] - top);
    const float take = std::exp(score - top);
    state.m[c] = top;
    state.s[c] = state.s[c] * keep + take;
    for (size_t i = 0; i < call.values.size(); ++i) {
      const PoolValue& value = call.values[i];
      const int64_t first = t * value.row_stride + c / call.columns_per_head * value.head_stride;
      float* sums = state.sums[i] + static_cast<int64_t>(c) * value.width;
      if (value.dtype == DType::kFloat32) {
        const float* row = static_cast<const float*>(value.data) + first;
        for (int d = 0; d < value.width; ++d) sums[d] = sums[d] * keep + take * row[d];
      } else {
        const uint16_t* row = static_cast<const uint16_t*>(value.data) + first;
        for (int d = 0; d < value.width; ++d) {
          sums[d] = sums[d] * keep + take * BFloat16ToFloat(row[d]);
        }
      }
    }
  }
}

}  // namespace

WorkspaceBytes MeasurePool(const PoolCall& call) {
  return {static_cast<size_t>(Tokens(call)) * call.columns * sizeof(float), 0};
}

void WeighSegments(const PoolCall& call, float* weights, const ParallelFor& pool) {
  CheckCall(call);
  // Wide enough to read rows in long runs, and some for every thread.
  constexpr int kLeast = 16;
  const int share = call.columns / (2 * pool.threads());
  const int width = std::clamp(share / kLeast * kLeast, kLeast, kWeightColumns);
  const int groups = (call.columns + width - 1) / width;
  ForEach(pool, int64_t{Segments(call)} * groups, [&](int64_t i) {
    const int first = static_cast<int>(i % groups) * width;
    WeighSome(call, static_cast<int>(i / groups), first, std::min(width, call.columns - first),
              weights);
  });
}

void AddWeighted(const PoolCall& call, const float* weights, const ParallelFor& pool) {
  CheckCall(call);
  KERNEL_CHECK(Segments(call) == 1);
  SumSegments(call, weights, true, pool);
}

void PoolSegments(const PoolCall& call, const Workspace& workspace, const ParallelFor& pool) {
  float* weights = reinterpret_cast<float*>(workspace.shared);
  WeighSegments(call, weights, pool);
  SumSegments(call, weights, false, pool);
}

size_t PoolStateBytes(int columns, std::span<const int> widths) {
  size_t floats = 2 * static_cast<size_t>(columns);
  for (const int width : widths) floats += static_cast<size_t>(columns) * width;
  return floats * sizeof(float);
}

PoolState CarvePoolState(std::byte* block, int columns, std::span<const int> widths) {
  KERNEL_CHECK(widths.size() <= 2);
  PoolState state;
  state.m = reinterpret_cast<float*>(block);
  state.s = state.m + columns;
  float* next = state.s + columns;
  for (size_t i = 0; i < widths.size(); ++i) {
    state.sums[i] = next;
    next += static_cast<int64_t>(columns) * widths[i];
  }
  return state;
}

void ResetPoolState(const PoolState& state, int columns, std::span<const int> widths) {
  std::fill_n(state.m, columns, kNothing);
  std::fill_n(state.s, columns, 0.0f);
  for (size_t i = 0; i < widths.size(); ++i) {
    std::fill_n(state.sums[i], static_cast<int64_t>(columns) * widths[i], 0.0f);
  }
}

void PoolAppend(const PoolCall& call, std::span<const PoolState> states, const ParallelFor& pool) {
  CheckCall(call);
  KERNEL_CHECK(states.size() == static_cast<size_t>(Segments(call)));
  ForEach(pool, int64_t{Segments(call)} * call.columns, [&](int64_t i) {
    const int segment = static_cast<int>(i / call.columns);
    AppendColumn(call, segment, static_cast<int>(i % call.columns), states[segment]);
  });
}

void PoolMeans(const PoolState& state, int columns, std::span<const int> widths,
               std::span<float* const> out) {
  for (size_t v = 0; v < widths.size(); ++v) {
    for (int c = 0; c < columns; ++c) {
      const float scale = state.s[c] == 0.0f ? 0.0f : 1.0f / state.s[c];
      const int64_t first = static_cast<int64_t>(c) * widths[v];
      for (int d = 0; d < widths[v]; ++d) out[v][first + d] = state.sums[v][first + d] * scale;
    }
  }
}

}  // namespace longview::kernels
