#include <vector>

#include "kernels/cuda/pool/pool_pieces.h"
#include "models/ops/device_backend.h"
#include "models/vision/map_means.h"

namespace longview::models {

MeansRef StageMeans(Backend& backend, std::span<const MapTokens> images) {
  MeansRef staged = {.images = images};
  if (!backend.on_device()) return staged;
  std::vector<kernels::cuda::PoolSegment> segments;
  for (const MapTokens& image : images) segments.push_back({image.row0, image.row0 + image.rows});
  const kernels::cuda::PoolPiecePlan cut = kernels::cuda::CutPieces(segments);
  staged.pieces = backend.List(cut.pieces);
  staged.piece0 = backend.List(cut.piece0);
  staged.count = static_cast<int32_t>(cut.pieces.size());
  staged.rows = segments.back().end;
  return staged;
}

namespace ops {

// Means with equal weights: scores of zero.
void MapMeans::OnDevice(DeviceBackend& device) const {
  const int64_t width = x.width;
  Carver scratch = device.Scratch();
  float* const normed = norm == nullptr ? x.floats() : scratch.Take<float>(means.rows * width);
  float* const scores = scratch.Take<float>(means.rows);
  kernels::cuda::PoolSums sums = {};
  sums.m = scratch.Take<float>(means.count);
  sums.s = scratch.Take<float>(means.count);
  sums.sums = scratch.Take<float>(means.count * width);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::rest, [&] {
    if (norm != nullptr) {
      DeviceRows(device.device(), Compute::kFp32, width)
          .Prenorm(x.floats(), norm->device, means.rows, normed);
    }
    device.Check(device.api().fill_zero(device.stream(), scores,
                                        static_cast<uint64_t>(means.rows) * sizeof(float)),
                 "equal weights");
    const auto columns = static_cast<int32_t>(width);
    const kernels::cuda::PoolPieces pieces = {{scores, 1, 1, 1, nullptr},
                                              {normed, width, 0, columns, kernels::DType::kFloat32},
                                              means.pieces,
                                              means.count,
                                              sums};
    device.Check(device.api().pool.pieces(device.stream(), pieces), "means of tokens");
    const kernels::cuda::PoolMerge merge = {
        sums, means.piece0, static_cast<int32_t>(means.images.size()), 1, columns, results};
    device.Check(device.api().pool.merge(device.stream(), merge), "merging means");
  });
}

}  // namespace ops
}  // namespace longview::models
