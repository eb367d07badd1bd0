#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/pool/segment_pool.h"

namespace longview::kernels {
namespace {

double ValueAt(const PoolValue& value, int64_t index) {
  if (value.dtype == DType::kFloat32) return static_cast<const float*>(value.data)[index];
  return BFloat16ToFloat(static_cast<const uint16_t*>(value.data)[index]);
}

}  // namespace

void PoolSegmentsRef(const PoolCall& call) {
  const int segments = static_cast<int>(call.offsets.size()) - 1;
  for (int i = 0; i < segments; ++i) {
    for (int c = 0; c < call.columns; ++c) {
      double top = -std::numeric_limits<double>::infinity();
      const auto visible = [&](int t) { return call.visible == nullptr || call.visible[t] != 0; };
      const auto score = [&](int t) { return double{call.scores[t * call.score_stride + c]}; };
      for (int t = call.offsets[i]; t < call.offsets[i + 1]; ++t) {
        if (visible(t)) top = std::max(top, score(t));
      }
      for (const PoolValue& value : call.values) {
        std::vector<double> sums(value.width, 0.0);
        double total = 0.0;
        for (int t = call.offsets[i]; t < call.offsets[i + 1]; ++t) {
          if (!visible(t)) continue;
          const double weight = std::exp(score(t) - top);
          total += weight;
          const int64_t first =
              t * value.row_stride + c / call.columns_per_head * value.head_stride;
          for (int d = 0; d < value.width; ++d) sums[d] += weight * ValueAt(value, first + d);
        }
        float* out = value.out + (static_cast<int64_t>(i) * call.columns + c) * value.width;
        for (int d = 0; d < value.width; ++d) {
          out[d] = total == 0.0 ? 0.0f : static_cast<float>(sums[d] / total);
        }
      }
    }
  }
}

}  // namespace longview::kernels
