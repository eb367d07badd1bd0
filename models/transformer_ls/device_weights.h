// A Transformer-LS language model's weights in a device's memory, with the tables of positions of
// its longest text. Norms, biases and word embeddings are float, the rest of the compute type.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/token/decode_shape.h"
#include "models/checkpoint/checkpoint.h"
#include "models/device/device_weights.h"
#include "models/transformer_ls/config.h"

namespace longview::models {

// As LsLmLayer.
struct DeviceLsLayer {
  DeviceLinear project, out, expand, contract;
  DeviceNorm norm1, norm2, window_norm, segment_norm;
  float* window_add = nullptr;
  float* distance_add = nullptr;
  void* window_table = nullptr;                             // T [h, w, dh], as positions.h
  void* segment_table = nullptr;                            // T [h, segment_ids, dh]
  kernels::cuda::ConstantBlock zero_segments, zero_window;  // device_zero_blocks.h
};

struct DeviceLsWeights {
  float* words = nullptr;  // [V, d], times sqrt(d)
  DeviceLinear logits;
  std::vector<DeviceLsLayer> layers;
  int64_t segment_ids = 0;
  int32_t* zeros = nullptr;  // [zero_count], for ConstantBlocks; with zero memory.
  int zero_count = 0;
  double parameters = 0;
  std::unique_ptr<DeviceBlock> block;  // Holds all of the above.
};

// Bytes of that block, from the configuration alone; `max_tokens` of a text.
size_t DeviceWeightBytes(const LsLmConfig& config, Compute compute, int max_tokens);

// Errors name the tensor. Throws DeviceError and what LibTorch throws; within a Device::Turn.
absl::StatusOr<DeviceLsWeights> LoadDeviceLsWeights(const LsLmConfig& config,
                                                    const Checkpoint& checkpoint,
                                                    const std::string& origin, Compute compute,
                                                    int max_tokens, const Device& device);

// The same for decode steps.
kernels::cuda::DecodeShape DecodeShapeOf(const LsLmConfig& config, Compute compute);
kernels::cuda::DecodeWeights DecodeWeightsOf(const DeviceLsWeights& weights);

}  // namespace longview::models
