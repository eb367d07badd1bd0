#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/pool/performer.h"

namespace longview::kernels {
namespace {

using Row = std::vector<double>;

Row ReadRow(const PerformerCall& call, const void* data, int64_t row, int head) {
  Row x(call.width);
  for (int d = 0; d < call.width; ++d) {
    const int64_t at = row * call.row_stride + head * call.width + d;
    x[d] = call.dtype == DType::kFloat32 ? static_cast<const float*>(data)[at]
                                         : BFloat16ToFloat(static_cast<const uint16_t*>(data)[at]);
  }
  return x;
}

Row Project(const PerformerCall& call, const Row& x) {
  Row out(call.features);
  for (int i = 0; i < call.features; ++i) {
    for (int d = 0; d < call.width; ++d) out[i] += x[d] * call.projection[i * call.width + d];
    out[i] *= std::pow(call.width, -0.25);
  }
  return out;
}

double Top(const Row& values) { return *std::max_element(values.begin(), values.end()); }

Row Features(const PerformerCall& call, const Row& x, double top) {
  Row phi = Project(call, x);
  double squares = 0;
  for (const double value : x) squares += value * value;
  for (double& value : phi) {
    value = (std::exp(value - squares / (2 * std::sqrt(call.width)) - top) + 1e-4) /
            std::sqrt(call.features);
  }
  return phi;
}

}  // namespace

void RunPerformerRef(const PerformerCall& call) {
  for (size_t image = 0; image + 1 < call.offsets.size(); ++image) {
    const int begin = call.offsets[image], end = call.offsets[image + 1];
    double top = -std::numeric_limits<double>::infinity();
    for (int h = 0; h < call.heads; ++h) {
      for (int s = begin; s < end; ++s)
        top = std::max(top, Top(Project(call, ReadRow(call, call.k, s, h))));
    }
    for (int h = 0; h < call.heads; ++h) {
      for (int t = begin; t < end; ++t) {
        const Row q = ReadRow(call, call.q, t, h);
        const Row phi_q = Features(call, q, Top(Project(call, q)));
        Row sum(call.width);
        double weight = 0;
        for (int s = begin; s < end; ++s) {
          const Row phi_k = Features(call, ReadRow(call, call.k, s, h), top);
          const Row v = ReadRow(call, call.v, s, h);
          double product = 0;
          for (int i = 0; i < call.features; ++i) product += phi_q[i] * phi_k[i];
          weight += product;
          for (int d = 0; d < call.width; ++d) sum[d] += product * v[d];
        }
        for (int d = 0; d < call.width; ++d) {
          const auto value = static_cast<float>(sum[d] / weight);
          const int64_t at = t * call.out_row_stride + h * call.width + d;
          if (call.dtype == DType::kFloat32) {
            static_cast<float*>(call.out)[at] = value;
          } else {
            static_cast<uint16_t*>(call.out)[at] = FloatToBFloat16(value);
          }
        }
      }
    }
  }
}

}  // namespace longview::kernels
