#include "kernels/span/tile_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/bfloat16.h"

namespace longview::kernels {
namespace {

// Sum of a row's sixteen lanes in one fixed order.
float SumLanes(const float* l) {
  float half[8];
  for (int i = 0; i < 8; ++i) half[i] = l[i] + l[i + 8];
  for (int i = 0; i < 4; ++i) half[i] += half[i + 4];
  return (half[0] + half[2]) + (half[1] + half[3]);
}

const float* FloatQuery(const Call& call, int64_t row, int head) {
  return static_cast<const float*>(call.q) + row * call.q_row_stride + head * call.q_head_stride;
}

const uint16_t* Bf16Query(const Call& call, int64_t row, int head) {
  return static_cast<const uint16_t*>(call.q) + row * call.q_row_stride + head * call.q_head_stride;
}

// Calls `touch(byte)` on every cache line of the given rows of one head.
template <typename Touch>
void ForEachLine(const void* tensor, const Call& call, int64_t row_stride, int64_t head_offset,
                 int width, const Tile& tile, int first, int rows, Touch touch) {
  const auto size = static_cast<int64_t>(SizeOf(call.dtype));
  const int end = std::min(first + rows, tile.rows);
  for (int i = first; i < end; ++i) {
    const auto* row =
        static_cast<const char*>(tensor) + (TileRow(tile, i) * row_stride + head_offset) * size;
    for (int64_t b = 0; b < width * size; b += 64) touch(row + b);
  }
}

}  // namespace

void PrefetchQueries(const Call& call, const Tile& tile, int head, int first, int rows) {
  ForEachLine(call.q, call, call.q_row_stride, head * call.q_head_stride, call.Dk, tile, first,
              rows, [](const char* line) { __builtin_prefetch(line, 0, 2); });
}

void PrefetchOutputs(const Call& call, const Tile& tile, int head, int first, int rows) {
  ForEachLine(call.out, call, call.out_row_stride, head * call.out_head_stride, call.Dv, tile,
              first, rows, [](const char* line) { __builtin_prefetch(line, 1, 2); });
}

void GatherFloatQueries(const Call& call, const Tile& tile, int head, const float* add, int stride,
                        float* out) {
  for (int i = 0; i < tile.rows; ++i, out += stride) {
    const int64_t row = TileRow(tile, i);
    if (call.dtype == DType::kFloat32) {
      std::memcpy(out, FloatQuery(call, row, head), call.Dk * sizeof(float));
    } else {
      const uint16_t* q = Bf16Query(call, row, head);
      for (int d = 0; d < call.Dk; ++d) out[d] = BFloat16ToFloat(q[d]);
    }
    if (add != nullptr) {
      for (int d = 0; d < call.Dk; ++d) out[d] += add[d];
    }
    for (int d = call.Dk; d < stride; ++d) out[d] = 0.0f;
  }
}

void GatherBf16Queries(const Call& call, const Tile& tile, int head, const float* add, int stride,
                       uint16_t* out) {
  for (int i = 0; i < tile.rows; ++i, out += stride) {
    const uint16_t* q = Bf16Query(call, TileRow(tile, i), head);
    std::memcpy(out, q, call.Dk * sizeof(uint16_t));
    if (add != nullptr) {
      for (int d = 0; d < call.Dk; ++d) out[d] = FloatToBFloat16(BFloat16ToFloat(q[d]) + add[d]);
    }
    for (int d = call.Dk; d < stride; ++d) out[d] = 0;
  }
}

void StoreRows(const Call& call, const Tile& tile, int head, const TileState& state) {
  for (int i = 0; i < tile.rows; ++i) {
    float* o = state.o + i * state.dv;
    FinishState(SumLanes(state.l + i * 16), o, call.Dv);
    const int64_t at = TileRow(tile, i) * call.out_row_stride + head * call.out_head_stride;
    if (call.dtype == DType::kFloat32) {
      std::memcpy(static_cast<float*>(call.out) + at, o, call.Dv * sizeof(float));
    } else {
      uint16_t* out = static_cast<uint16_t*>(call.out) + at;
      for (int d = 0; d < call.Dv; ++d) out[d] = FloatToBFloat16(o[d]);
    }
  }
}

void StorePartials(const PartialStates& partials, const Call& call, const Tile& tile, int head,
                   const TileState& state) {
  const int64_t slot0 = tile.part + static_cast<int64_t>(head - tile.head0) * tile.rows;
  for (int i = 0; i < tile.rows; ++i) {
    const float m = state.m[i];
    partials.m[slot0 + i] = m == kLowestScore ? kNoKey : m;
    partials.l[slot0 + i] = SumLanes(state.l + i * 16);
    std::memcpy(partials.o + (slot0 + i) * partials.o_stride, state.o + i * state.dv,
                call.Dv * sizeof(float));
  }
}

}  // namespace longview::kernels
