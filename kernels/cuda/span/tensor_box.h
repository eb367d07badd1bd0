// TMA boxes of a call's tensors, 64 rows by 64 columns of one head: which tensors can be read by
// them, and what their tensor maps are made of. The host makes this for every call; the plugin
// encodes it (span_warpgroup.cu), the tests' machine copies by it.
//
// A box of rows that all exist, columns at or beyond D as zeros: how many rows a tensor has need
// not be known. What no box describes comes piece by piece; which of both changes no bit.
//
// Stateless functions over plain data: thread-safe.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/span_call.h"

namespace longview::kernels::cuda {

// Tensor maps of one call. Sources that read the same tensor share one (all of a band's do); more
// than this come piece by piece.
inline constexpr int kMaxTensorBoxes = 8;

// [row][head][column] of 16-bit elements; strides in bytes, multiples of 16.
struct TensorBox {
  const void* data;
  int64_t head_stride;
  int64_t row_stride;
  int32_t columns;
  int32_t heads;

  bool operator==(const TensorBox&) const = default;
};

// Indices of the boxes that read a source's keys and values; -1: none.
struct SourceBoxes {
  int8_t k[kMaxDeviceSources];
  int8_t v[kMaxDeviceSources];
};

struct CallBoxes {
  int32_t used = 0;
  TensorBox boxes[kMaxTensorBoxes] = {};
  SourceBoxes of = {};
};

// The place of an equal box, of a new one, or -1 where there is no more room.
inline int8_t AddBox(const TensorBox& box, CallBoxes& boxes) {
  for (int i = 0; i < boxes.used; ++i) {
    if (boxes.boxes[i] == box) return static_cast<int8_t>(i);
  }
  if (boxes.used == kMaxTensorBoxes) return -1;
  boxes.boxes[boxes.used] = box;
  return static_cast<int8_t>(boxes.used++);
}

// REQUIRES: PrepareCall was called; 16-bit elements.
inline CallBoxes BoxesOf(const SpanCall& call) {
  // Only for strides that a tensor map takes, and no constant row.
  const auto box_of = [&call](const SpanSource& source, const void* data, int64_t head_stride,
                              int64_t row_stride, int columns, CallBoxes& boxes) -> int8_t {
    // A device block is 64 rows of one head.
    const bool rows = source.layout == Layout::kRows;
    const TensorBox box{data, rows ? head_stride * 2 : row_stride * 2, row_stride * 2, columns,
                        rows ? call.H / call.kv_group : 1};
    constexpr int64_t kStrides = int64_t{1} << 40;
    const auto fits = [](int64_t stride) { return stride > 0 && stride < kStrides; };
    if (source.pieces == 0 || !fits(box.head_stride) || !fits(box.row_stride)) return -1;
    return AddBox(box, boxes);
  };
  CallBoxes boxes;
  for (int s = 0; s < call.sources_used; ++s) {
    const SpanSource& source = call.sources[s];
    boxes.of.k[s] =
        box_of(source, source.k, source.k_head_stride, source.k_row_stride, call.Dk, boxes);
    boxes.of.v[s] =
        box_of(source, source.v, source.v_head_stride, source.v_row_stride, call.Dv, boxes);
  }
  return boxes;
}

}  // namespace longview::kernels::cuda
