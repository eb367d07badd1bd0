// All tokens of one head, kOuterTokens at a time. Included by instruction set files after their
// simd header; they define
//   kGroupTokens   tokens whose sums stay in registers during a pass
//
// A pass over the state updates and reads it at once: for each of its rows, token after token,
//   S += a_t b_t;   sum_t += c_t S
// Keys are summed with channels as rows and P's rows as lanes (a = k, b = weight of the write,
// c = q), values the other way round (a = weight of the write, b = v, c = weight of the read).
#pragma once

#include "kernels/linear_attention/running_outer_ops.h"

namespace longview::kernels {
namespace {

constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

// log2(1 + y) for 0 <= y <= 1, relative error at most 2e-7: interpolated at Chebyshev's points.
inline V16 Log2OnePlus(V16 y) {
  constexpr float kTerms[] = {-0.0419450104f, 0.111832075f, -0.19623895f,  0.275221199f,
                              -0.358299077f,  0.480678886f, -0.721339524f, 1.44269502f};
  V16 sum = Broadcast(0.00739540206f);
#pragma GCC unroll 8
  for (const float term : kTerms) sum = Fma(sum, y, Broadcast(term));
  return Mul(sum, y);
}

inline V16 Negative(V16 x) { return Sub(Zero(), x); }

// log2(1 + 2^x) without overflow.
inline V16 SoftplusLn2(V16 x) {
  const V16 distance = Max(x, Negative(x));
  return Add(Max(x, Zero()), Log2OnePlus(Exp2(Negative(distance))));
}

inline V16 Phi(int activation, V16 x) {
  if (activation == 0) return SoftplusLn2(x);
  if (activation == 1) return Mul(Broadcast(kLn2), SoftplusLn2(Mul(x, Broadcast(kLog2E))));
  const V16 below = Negative(Max(Zero(), Negative(x)));
  return Add(Max(x, Zero()), Exp2(Mul(below, Broadcast(kLog2E))));
}

// Rows of `tokens` tokens: at + i * stride.
struct Inputs {
  const float* at;
  int64_t stride;
};

struct State {
  float* data;  // [rows][lanes]
  int rows;
  int lanes;
};

// sums[i][lane] = sum over the state's rows of c[i][row] S[row][lane], S updated by a and b.
template <int T>
void Scan(const State& state, int lane, Inputs a, Inputs b, Inputs c, float* sums) {
  V16 add[T], sum[T];
#pragma GCC unroll 8
  for (int i = 0; i < T; ++i) {
    add[i] = Load(b.at + i * b.stride + lane);
    sum[i] = Zero();
  }
  float* at = state.data + lane;
  for (int row = 0; row < state.rows; ++row, at += state.lanes) {
    V16 s = Load(at);
#pragma GCC unroll 8
    for (int i = 0; i < T; ++i) {
      s = Fma(Broadcast(a.at[i * a.stride + row]), add[i], s);
      sum[i] = Fma(Broadcast(c.at[i * c.stride + row]), s, sum[i]);
    }
    Store(at, s);
  }
#pragma GCC unroll 8
  for (int i = 0; i < T; ++i) Store(sums + i * state.lanes + lane, sum[i]);
}

// sums[i][lane] = sum over channels of g[i][channel] P[channel][lane]
template <int T>
void Multiply(const OuterHead& head, int lane, const float* g, float* sums) {
  V16 sum[T];
#pragma GCC unroll 8
  for (int i = 0; i < T; ++i) sum[i] = Zero();
  const float* at = head.packed + lane;
  for (int d = 0; d < head.width; ++d, at += head.row_lanes) {
    const V16 p = Load(at);
#pragma GCC unroll 8
    for (int i = 0; i < T; ++i) sum[i] = Fma(Broadcast(g[i * head.row_stride + d]), p, sum[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < T; ++i) Store(sums + i * head.row_lanes + lane, sum[i]);
}

// Calls body<T>(first) for groups of T <= kGroupTokens tokens.
template <int T, typename Body>
inline void ForGroups(int tokens, int first, Body&& body) {
  if constexpr (T > 0) {
    for (; first + T <= tokens; first += T) body.template operator()<T>(first);
    ForGroups<T - 1>(tokens, first, body);
  }
}

// The work of one block of tokens.
struct Block {
  int tokens;
  int64_t first;  // First of the call's tokens.
  float* writes;  // [tokens][row_lanes] a_t
  float* reads;   // [tokens][row_lanes] scores, then w_t not yet divided by their sum
  float* v;       // [tokens][width_lanes]
  float* out;     // [tokens][width_lanes]
};

inline void WeighWrites(const OuterHead& head, const Block& block) {
  const float* g = head.g + block.first * head.row_stride;
  const V16 scale = Broadcast(head.scale);
  for (int lane = 0; lane < head.row_lanes; lane += 16) {
    ForGroups<kGroupTokens>(block.tokens, 0, [&]<int T>(int i) {
      Multiply<T>(head, lane, g + i * head.row_stride, block.writes + i * head.row_lanes);
    });
    for (int i = 0; i < block.tokens; ++i) {
      float* weight = block.writes + i * head.row_lanes + lane;
      Store(weight, Phi(head.activation, Mul(Load(weight), scale)));
    }
  }
}

inline void ScanKeys(const OuterHead& head, const Block& block) {
  const State state = {head.keys, head.width, head.row_lanes};
  const int64_t first = block.first * head.row_stride;
  for (int lane = 0; lane < head.row_lanes; lane += 16) {
    ForGroups<kGroupTokens>(block.tokens, 0, [&]<int T>(int i) {
      const int64_t row = first + i * head.row_stride, at = int64_t{i} * head.row_lanes;
      Scan<T>(state, lane, {head.k + row, head.row_stride}, {block.writes + at, head.row_lanes},
              {head.q + row, head.row_stride}, block.reads + at);
    });
  }
}

inline void ScanValues(const OuterHead& head, const Block& block) {
  const State state = {head.values, head.rows, head.width_lanes};
  for (int lane = 0; lane < head.width_lanes; lane += 16) {
    ForGroups<kGroupTokens>(block.tokens, 0, [&]<int T>(int i) {
      const int64_t row = int64_t{i} * head.row_lanes, at = int64_t{i} * head.width_lanes;
      Scan<T>(state, lane, {block.writes + row, head.row_lanes}, {block.v + at, head.width_lanes},
              {block.reads + row, head.row_lanes}, block.out + at);
    });
  }
}

// Scores of token t become 2^(score - largest), padding lanes 0; returns their sum.
inline float WeighReads(const OuterHead& head, float* scores, float t) {
  const V16 scale = Broadcast(head.scale * kLog2E / t);
  V16 top = Broadcast(-__builtin_inff());
  for (int lane = 0; lane < head.row_lanes; lane += 16) {
    const int left = head.rows - lane;
    const uint32_t bits = left >= 16 ? 0xffffu : (1u << left) - 1;
    const V16 score = MaskScores(bits, Mul(Load(scores + lane), scale));
    Store(scores + lane, score);
    top = Max(top, score);
  }
  const V16 largest = Broadcast(MaxLane(top));
  V16 sum = Zero();
  for (int lane = 0; lane < head.row_lanes; lane += 16) {
    const V16 weight = Exp2(Sub(Load(scores + lane), largest));
    Store(scores + lane, weight);
    sum = Add(sum, weight);
  }
  alignas(64) float lanes[16];
  Store(lanes, sum);
  float total = 0;
  for (const float lane : lanes) total += lane;
  return total;
}

inline void CopyValues(const OuterHead& head, const Block& block) {
  for (int i = 0; i < block.tokens; ++i) {
    const float* v = head.v + (block.first + i) * head.row_stride;
    for (int lane = 0; lane < head.width_lanes; lane += 16) {
      Store(block.v + i * head.width_lanes + lane, LoadFirst(v + lane, head.width - lane));
    }
  }
}

inline void RunBlock(const OuterHead& head, const Block& block) {
  float divisors[kOuterTokens];
  CopyValues(head, block);
  WeighWrites(head, block);
  ScanKeys(head, block);
  for (int i = 0; i < block.tokens; ++i) {
    const auto t = static_cast<float>(head.before + block.first + i + 1);
    divisors[i] = t * WeighReads(head, block.reads + i * head.row_lanes, t);
  }
  ScanValues(head, block);
  for (int i = 0; i < block.tokens; ++i) {
    float* out = head.out + (block.first + i) * head.out_stride;
    const float* sums = block.out + i * head.width_lanes;
    for (int d = 0; d < head.width; ++d) out[d] = sums[d] / divisors[i];
  }
}

inline void RunOuterHead(const OuterHead& head) {
  Block block;
  block.writes = head.scratch;
  block.reads = block.writes + kOuterTokens * head.row_lanes;
  block.v = block.reads + kOuterTokens * head.row_lanes;
  block.out = block.v + kOuterTokens * head.width_lanes;
  for (int64_t first = 0; first < head.tokens; first += kOuterTokens) {
    const int64_t left = head.tokens - first;
    block.tokens = left < kOuterTokens ? static_cast<int>(left) : kOuterTokens;
    block.first = first;
    RunBlock(head, block);
  }
}

}  // namespace
}  // namespace longview::kernels
