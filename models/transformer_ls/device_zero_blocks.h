// Zero memory on a device (zero_blocks.h): what a layer's linears and norms make of places before
// the text, one block of 64 equal rows per layer and kind.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/device/device_weights.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/device_weights.h"

namespace longview::models {

// Gives the blocks their places; nothing without zero memory.
void AssignZeroBlocks(const LsLmConfig& config, DevicePlaces& places, DeviceLsWeights& weights);

// Computes them. `inputs`: of each layer, [d], what its norm makes of a zero hidden state.
// INVALID_ARGUMENT: see DeviceFill::PutTyped. Throws DeviceError and what LibTorch throws; within a
// Device::Turn.
// REQUIRES: the layers' weights are on the device.
absl::Status FillZeroBlocks(const LsLmConfig& config, Compute compute, const Device& device,
                            std::span<const std::vector<float>> inputs, DeviceFill& fill,
                            const DeviceLsWeights& weights);

}  // namespace longview::models
