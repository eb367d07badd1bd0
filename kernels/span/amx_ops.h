// Tile products of up to 32 query rows with a key block and a value block. Included by
// executor_amx.cc, and by its test with emulated tiles.
//
// Tiles are 16 rows of 64 bytes. KvLayout's bfloat16 panels hold one right-hand tile (16
// pairs x 16 columns) in each kilobyte. 2 x 2 tiles of sums per step keep the tile unit's
// pipeline full. Tiles 0-3 hold sums, 4-5 the left, 6-7 the right operands.
#pragma once

#include "kernels/span/softmax_rows.h"
#include "kernels/span/vector_ops.h"

namespace longview::kernels {
namespace {

constexpr int kTileRowCount = 16;
constexpr int kTileBytes = 1024;

// sums[i][j] += left[i] * right[j] over `steps` tiles, i < R row tiles, j < N column tiles.
template <class Tiles, int R, int N>
inline void MultiplyTiles(const std::byte* left, int64_t left_stride, const std::byte* right,
                          int64_t right_step, int64_t right_columns, int steps) {
  for (int c = 0; c < steps; ++c) {
    const std::byte* a = left + c * 64;
    const std::byte* b = right + c * right_step;
    Tiles::template Load<4>(a, left_stride);
    if constexpr (R == 2) Tiles::template Load<5>(a + kTileRowCount * left_stride, left_stride);
    Tiles::template Load<6>(b, 64);
    if constexpr (N == 2) Tiles::template Load<7>(b + right_columns, 64);
    Tiles::template Multiply<0, 4, 6>();
    if constexpr (N == 2) Tiles::template Multiply<1, 4, 7>();
    if constexpr (R == 2) Tiles::template Multiply<2, 5, 6>();
    if constexpr (R == 2 && N == 2) Tiles::template Multiply<3, 5, 7>();
  }
}

// Moves the sums between tiles and rows of floats, `stride` bytes apart.
template <class Tiles, int R, int N>
inline void LoadSums(const float* from, int64_t stride) {
  const auto* p = reinterpret_cast<const std::byte*>(from);
  Tiles::template Load<0>(p, stride);
  if constexpr (N == 2) Tiles::template Load<1>(p + 64, stride);
  if constexpr (R == 2) Tiles::template Load<2>(p + kTileRowCount * stride, stride);
  if constexpr (R == 2 && N == 2) Tiles::template Load<3>(p + kTileRowCount * stride + 64, stride);
}

template <class Tiles, int R, int N>
inline void StoreSums(float* to, int64_t stride) {
  auto* p = reinterpret_cast<std::byte*>(to);
  Tiles::template Store<0>(p, stride);
  if constexpr (N == 2) Tiles::template Store<1>(p + 64, stride);
  if constexpr (R == 2) Tiles::template Store<2>(p + kTileRowCount * stride, stride);
  if constexpr (R == 2 && N == 2) Tiles::template Store<3>(p + kTileRowCount * stride + 64, stride);
}

template <class Tiles>
inline void ZeroSums() {
  Tiles::template Zero<0>();
  Tiles::template Zero<1>();
  Tiles::template Zero<2>();
  Tiles::template Zero<3>();
}

// Weights: how softmax_rows.h stores them, bfloat16 in the first half of each score row.
template <class Tiles, class WeightsType>
struct AmxOps {
  using Weights = WeightsType;
  static constexpr int kGroupRows = 2 * kTileRowCount;
  static constexpr int kPanelStep = 2;
  static constexpr int kPanelBytes = 2;
  static constexpr int64_t kScoreStride = kBlockKeys * sizeof(float);

  static void Scores(const TileState& t, const BlockWork& block, int row0, int rows, int first,
                     int panels) {
    if (rows > kTileRowCount) {
      ScoreTiles<2>(t, block, row0, first, panels);
    } else {
      ScoreTiles<1>(t, block, row0, first, panels);
    }
  }

  static void Values(const TileState& t, const BlockWork& block, int row0, int rows, int key0,
                     int key1) {
    if (rows > kTileRowCount) {
      ValueTiles<2>(t, block, row0, key0, key1);
    } else {
      ValueTiles<1>(t, block, row0, key0, key1);
    }
  }

 private:
  template <int R>
  static void ScoreTiles(const TileState& t, const BlockWork& block, int row0, int first,
                         int panels) {
    const int64_t q_stride = t.dk * 2;
    const int64_t panel_bytes = t.dk * 32;
    const std::byte* q = static_cast<const std::byte*>(t.q) + row0 * q_stride;
    for (int panel = first; panel < first + panels; panel += 2) {
      ZeroSums<Tiles>();
      MultiplyTiles<Tiles, R, 2>(q, q_stride, block.k + panel * panel_bytes, kTileBytes,
                                 panel_bytes, t.dk / 32);
      StoreSums<Tiles, R, 2>(t.s + row0 * kBlockKeys + panel * 16, kScoreStride);
    }
  }

  // Values lie in chunks of 32 keys: [dv / 16] tiles each.
  template <int R>
  static void ValueTiles(const TileState& t, const BlockWork& block, int row0, int key0, int key1) {
    const int chunk0 = key0 / 32;
    const int chunks = (key1 + 31) / 32 - chunk0;
    const int64_t chunk_bytes = t.dv / 16 * kTileBytes;
    const auto* weights = reinterpret_cast<const std::byte*>(t.s + row0 * kBlockKeys) + chunk0 * 64;
    const std::byte* v = block.v + chunk0 * chunk_bytes;
    const int64_t o_stride = t.dv * 4;
    for (int d = 0; d < t.dv; d += 32) {
      float* o = t.o + row0 * t.dv + d;
      LoadSums<Tiles, R, 2>(o, o_stride);
      MultiplyTiles<Tiles, R, 2>(weights, kScoreStride, v + d / 16 * kTileBytes, chunk_bytes,
                                 kTileBytes, chunks);
      StoreSums<Tiles, R, 2>(o, o_stride);
    }
  }
};

}  // namespace
}  // namespace longview::kernels
