#include <cmath>

#include "models/ops/device_backend.h"
#include "models/transformer_ls/score_positions.h"

namespace longview::models::ops {

void ScorePositions::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::attention, [&] {
    const auto dim = static_cast<int32_t>(q.width / heads);
    for (const PositionScores& scores : tables) {
      if (scores.stride == 0) continue;
      const kernels::Table& rows = scores.table.rows;
      const kernels::cuda::PositionScores args = {q.data,
                                                  q.stride,
                                                  rows.dot_add,
                                                  rows.data,
                                                  rows.head_stride / dim,
                                                  scores.limits.data,
                                                  static_cast<int32_t>(scores.stride),
                                                  q.count * scores.stride,
                                                  scores.stride,
                                                  scores.out.floats(),
                                                  static_cast<int32_t>(q.count),
                                                  heads,
                                                  dim,
                                                  1.0f / std::sqrt(static_cast<float>(dim)),
                                                  device.type()};
      device.Check(device.api().token.positions(device.stream(), args), "scores of positions");
    }
  });
}

}  // namespace longview::models::ops
