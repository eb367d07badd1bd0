#include "models/dense/products.h"
#include "models/ops/host_backend.h"
#include "models/vil/sum_positions.h"
#include "models/vil/widened_rows.h"

namespace longview::models::ops {

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
