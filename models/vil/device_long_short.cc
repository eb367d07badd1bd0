// Long-short attention of ViL-LS on a device: long_short/map_attention.h over whole maps.
#include "models/vil/device_block.h"

namespace longview::models {

// Queries as they are, keys and values normalised, scores of landmarks.
void DeviceVilSteps::ProjectLongShort(const VilBlock& block) const {
  MultiplyRows(device_, block.qkv.device, buffers_.normed, rows(), buffers_.qkv);
  const kernels::cuda::ProjectedRows args = {
      buffers_.qkv,  block.qkv.device.bias, block.token_norm.device.view(),
      buffers_.keys, buffers_.values, buffers_.landmark_scores,
      rows(),        stage_.width,    stage_.heads * stage_.ranks,
      dtype()};
  device_.Check(device_.api().token.project(device_.stream(), args), "keys and values");
}

void DeviceVilSteps::MakeLandmarks(const VilBlock& block) const {
  const DeviceVilLists& lists = planned_.lists();
  const int32_t columns = stage_.heads * stage_.ranks, dim = stage_.head_dim();
  float* const means[] = {buffers_.landmark_means,
                          buffers_.landmark_means + int64_t{planned_.images()} * columns * dim};
  for (int part = 0; part < 2; ++part) {
    const std::byte* data = part == 0 ? buffers_.keys : buffers_.values;
    const kernels::cuda::PoolPieces pieces = {
        {buffers_.landmark_scores, columns, columns, stage_.ranks, lists.in_map},
        {data, stage_.width, dim, dim, dtype()},
        lists.pieces,
        planned_.pieces(),
        buffers_.landmark_sums};
    device_.Check(device_.api().pool.pieces(device_.stream(), pieces), "pooling");
    const kernels::cuda::PoolMerge merge = {
        buffers_.landmark_sums, lists.piece0, planned_.images(), columns, dim, means[part]};
    device_.Check(device_.api().pool.merge(device_.stream(), merge), "merging pools");
  }
  const kernels::cuda::LandmarkRows rows = {means[0],
                                            means[1],
                                            nullptr,
                                            nullptr,
                                            0,
                                            block.landmark_norm.device.view(),
                                            buffers_.landmarks,
                                            planned_.images(),
                                            stage_.ranks,
                                            stage_.heads,
                                            dim,
                                            dtype()};
  device_.Check(device_.api().encoder.landmarks(device_.stream(), rows), "landmarks");
}

void DeviceVilSteps::AttendLongShort(int block) const {
  if (stage_.ranks > 0) MakeLandmarks(BlockOf(block));
  const int64_t d = stage_.width;
  const int dim = stage_.head_dim();
  const kernels::cuda::SpanSource fresh = DeviceHeadsSource(buffers_.keys, buffers_.values, d, dim);
  kernels::cuda::SpanCall call = DeviceHeadsCall(context_.compute, stage_.heads, dim);
  call.q = buffers_.qkv;
  call.q_row_stride = BlockOf(block).qkv.out;
  call.out = buffers_.normed;
  call.sources_used = planned_.sources();
  call.sources[0] = call.sources[2] = fresh;
  call.sources[1] =
      DeviceHeadsSource(buffers_.landmarks, buffers_.landmarks + row_bytes(), 2 * d, dim);
  if (stage_.relative_bias()) {
    call.tables[0] = DeviceBiasTable(buffers_.bias, planned_.bias_entries());
  }
  models::Attend(device_, planned_.attention(), call, buffers_.partials);
  // A class row sees its own key and what the map's tokens made of theirs.
  call.sources_used = 2;
  call.sources[1] = DeviceHeadsSource(buffers_.normed, buffers_.normed, d, dim);
  models::Attend(device_, planned_.global_attention(), call, buffers_.partials);
}

}  // namespace longview::models
