#include "ATen/core/Tensor.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/mm.h"
#include "c10/core/InferenceMode.h"
#include "models/ops/host_backend.h"
#include "models/vil/sum_positions.h"
#include "models/vil/widened_rows.h"

namespace longview::models::ops {
namespace {

at::Tensor AsMatrix(const float* data, int64_t rows, int64_t columns, int64_t stride) {
  return at::from_blob(const_cast<float*>(data), {rows, columns}, {stride, 1});
}

// out [f, d] (rows `stride` floats apart) = a^T b for a [n, f], b [n, d]. Their shapes belong to
// one item alone, so the result's bits do not depend on who shares the batch. Throws what LibTorch
// throws.
void TransposedProduct(const float* a, const float* b, int64_t n, int64_t f, int64_t d, float* out,
                       int64_t stride) {
  const c10::InferenceMode guard;
  AsMatrix(out, f, d, stride).copy_(at::mm(AsMatrix(a, n, f, f).t(), AsMatrix(b, n, d, d)));
}

}  // namespace

void SumPositions::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  const int64_t d = from_keys.width, f = keys.width();
  int64_t key0 = 0;
  for (const MapTokens& image : images) {
    for (int part = 0; part < 2; ++part) {
      const Rows& from = part == 0 ? from_keys : from_values;
      const Table& matrix = part == 0 ? keys : values;
      const std::vector<float> rows = WidenedRows(from, image.row0, image.rows, host.compute());
      TransposedProduct(matrix.values(), rows.data(), image.rows, f, d,
                        out.floats() + key0 * 2 * d + part * d, 2 * d);
    }
    key0 += f;
  }
}

}  // namespace longview::models::ops
