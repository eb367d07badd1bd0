// Products of a group of up to six query rows with key blocks and value blocks, sums in
// registers. Included by instruction set files after their simd header.
//
// Operands are streams of 32-bit words: one float, or a pair of bfloat16. A query word is
// broadcast and multiplied with sixteen keys' words (or a weight word with sixteen columns);
// the panels of KvLayout are laid out so that both types are walked alike. Product provides
//   MultiplyAdd(word, words, sum)   one product per lane for floats, two for pairs
//
// The including file sets kWidth: registers of 16 sums per row.
#pragma once

#include "kernels/span/softmax_rows.h"
#include "kernels/span/vector_ops.h"

namespace longview::kernels {
namespace {

constexpr int kGroup = 6;  // Rows: 6 x 4 sums leave room for 4 keys and a query in 32 registers.

struct FloatProduct {
  static V16 MultiplyAdd(V16 word, V16 words, V16 sum) { return Fma(word, words, sum); }
};

// One row does so little with what it loads that memory sets its pace: with each line of a block
// that is used, one of the block that follows is drawn into cache, in the order of addresses.
template <int R>
inline void Draw(const float* line) {
  if constexpr (R == 1) __builtin_prefetch(line, 0, 2);  // Into the second level.
}

// s[r][i * 16 ..] = q[r] . keys of panel i, for R rows and N panels of `words` words per key;
// rows of s lie `stride` apart. One chain over the words per score. `next`: as many lines of the
// block that follows.
template <class Product, int R, int N>
void ScorePanels(const float* q, int words, const float* k, const float* next, float* s,
                 int stride) {
  V16 sum[R][N];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) sum[r][i] = Zero();
  }
#pragma GCC unroll 4
  for (int d = 0; d < words; ++d) {
    V16 key[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) {
      key[i] = Load(k + (i * words + d) * 16);
      Draw<R>(next + (d * N + i) * 16);
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const V16 query = Broadcast(q[r * words + d]);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum[r][i] = Product::MultiplyAdd(query, key[i], sum[r][i]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) Store(s + r * stride + i * 16, sum[r][i]);
  }
}

// Value words in memory: those of the next word of keys and of the next 16 columns.
struct ValueStrides {
  int word;
  int columns;
};

// o[r][i * 16 ..] += sum over `words` of weight[r][word] * v[word][i * 16 ..].
template <class Product, int R, int N>
void ValueColumns(const float* weights, const float* v, int words, ValueStrides strides,
                  const float* next, int dv, float* o) {
  V16 sum[R][N];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) sum[r][i] = Load(o + r * dv + i * 16);
  }
#pragma GCC unroll 4
  for (int j = 0; j < words; ++j) {
    V16 value[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) {
      value[i] = Load(v + j * strides.word + i * strides.columns);
      Draw<R>(next + (j * N + i) * 16);
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const V16 weight = Broadcast(weights[r * kBlockKeys + j]);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum[r][i] = Product::MultiplyAdd(weight, value[i], sum[r][i]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) Store(o + r * dv + i * 16, sum[r][i]);
  }
}

// Calls body.template operator()<n>() with n = count, 1 <= count <= kMax <= 6.
template <int kMax, class Body>
inline void WithCount(int count, Body body) {
  if constexpr (kMax > 1) {
    if (count < kMax) return WithCount<kMax - 1>(count, body);
  }
  body.template operator()<kMax>();
}

// Raw scores of up to kGroup rows with key panels [first, first + panels). The block that follows
// lies `ahead` floats further.
template <class Product>
void GroupScores(const float* q, int rows, int words, const float* k, ptrdiff_t ahead, int first,
                 int panels, float* s, int stride) {
  for (int i = first; i < first + panels; i += kWidth) {
    WithCount<kWidth>(Least(kWidth, first + panels - i), [&]<int N>() {
      WithCount<kGroup>(rows, [&]<int R>() {
        const float* panel = k + i * words * 16;
        ScorePanels<Product, R, N>(q, words, panel, panel + ahead, s + i * 16, stride);
      });
    });
  }
}

// Weights [rows][words] times values into t.o, all columns.
template <class Product>
void GroupValues(const TileState& t, int row0, int rows, const float* weights, const float* v,
                 int words, ValueStrides strides, ptrdiff_t ahead) {
  float* o = t.o + row0 * t.dv;
  for (int d = 0; d < t.dv; d += 16 * kWidth) {
    const float* columns = v + d / 16 * strides.columns;
    WithCount<kWidth>(Least(kWidth, (t.dv - d) / 16), [&]<int N>() {
      WithCount<kGroup>(rows, [&]<int R>() {
        ValueColumns<Product, R, N>(weights, columns, words, strides, v + ahead + d * words, t.dv,
                                    o + d);
      });
    });
  }
}

// From a block to the next; 0 where none is known.
inline ptrdiff_t WordsTo(const std::byte* block, const std::byte* next) {
  return next == nullptr ? 0 : (next - block) / static_cast<ptrdiff_t>(sizeof(float));
}

// Float panels: one word per key and column.
struct FloatOps {
  using Weights = FloatWeights;
  static constexpr int kGroupRows = kGroup;
  static constexpr int kPanelStep = 1;
  static constexpr int kPanelBytes = 4;

  static void Scores(const TileState& t, const BlockWork& block, int row0, int rows, int first,
                     int panels) {
    GroupScores<FloatProduct>(static_cast<const float*>(t.q) + row0 * t.dk, rows, t.dk,
                              reinterpret_cast<const float*>(block.k),
                              WordsTo(block.k, block.next_k), first, panels,
                              t.s + row0 * kBlockKeys, kBlockKeys);
  }

  static void Values(const TileState& t, const BlockWork& block, int row0, int rows, int key0,
                     int key1) {
    const float* v = reinterpret_cast<const float*>(block.v) + key0 * t.dv;
    GroupValues<FloatProduct>(t, row0, rows, t.s + row0 * kBlockKeys + key0, v, key1 - key0,
                              {t.dv, 16}, WordsTo(block.v, block.next_v));
  }
};

void Dots(const float* q, int rows, const float* panel, int dk, float* out, int out_stride) {
  for (int r = 0; r < rows; r += kGroup) {
    GroupScores<FloatProduct>(q + r * dk, Least(kGroup, rows - r), dk, panel, 0, 0, kBlockKeys / 16,
                              out + r * out_stride, out_stride);
  }
}

}  // namespace
}  // namespace longview::kernels
