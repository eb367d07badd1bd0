#include <algorithm>

#include "kernels/base/bfloat16.h"
#include "kernels/pool/slice_pool.h"

namespace longview::kernels {

void PoolSlicesRef(const SlicePoolCall& call) {
  const auto value = [&](int64_t row, int channel) {
    const int64_t at = row * call.row_stride + channel;
    if (call.dtype == DType::kFloat32) return static_cast<const float*>(call.rows)[at];
    return BFloat16ToFloat(static_cast<const uint16_t*>(call.rows)[at]);
  };
  for (const SlicePiece& piece : call.pieces) {
    for (int channel = 0; channel < call.channels; ++channel) {
      double result = piece.begins ? 0.0 : piece.out[channel];
      bool empty = piece.begins;
      for (int64_t row = piece.row0; row < piece.row0 + piece.rows; ++row) {
        if (call.visible != nullptr && call.visible[row] == 0) continue;
        const double next = value(row, channel);
        if (call.pooling == SlicePooling::kMean) {
          result += next;
        } else {
          result = empty ? next : std::max(result, next);
        }
        empty = false;
      }
      if (call.pooling == SlicePooling::kMean && piece.divisor > 0) result /= piece.divisor;
      piece.out[channel] = static_cast<float>(result);
    }
  }
}

}  // namespace longview::kernels
