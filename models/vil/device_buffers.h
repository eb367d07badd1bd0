// The device memory of a batch: residual streams of a stage and the one before, what a stage works
// with, what comes back. Sized from the plans, carved out of the model's workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/dense/compute.h"
#include "models/dense/scratch.h"
#include "models/vil/device_stage.h"

namespace longview::models {

// Rows that go from attention to the next block together, so that the MLP's hidden layer never
// exists as a whole.
inline constexpr int64_t kDeviceTailRows = 32768;

// "T" is an element of the compute type. What a linear reads or writes holds kDevicePanelTail rows
// more than it has. Null is what the stage does not use.
struct DeviceVilBuffers {
  float* x = nullptr;  // [rows, d] residual stream; the stage before has its own.
  // While tokens are made.
  std::byte* patches = nullptr;  // T [tokens, taps]
  std::byte* made = nullptr;     // T [tokens, d]
  // In blocks, over the same memory.
  std::byte* normed = nullptr;       // T [rows, d] LN(x); then attention's output.
  std::byte* qkv = nullptr;          // T [rows, 3d, and h r scores of landmarks]
  std::byte* wide = nullptr;         // T [kDeviceTailRows at most, hidden]
  std::byte* added = nullptr;        // T [kDeviceTailRows at most, d]
  std::byte* keys = nullptr;         // T [projected keys, 2d]; long-short: [rows, d]
  std::byte* values = nullptr;       // T [rows, d], long-short attention only, as what follows:
  std::byte* landmarks = nullptr;    // T [images r, 2d]
  float* landmark_scores = nullptr;  // [rows, h r]
  float* landmark_means = nullptr;   // [2, images, h r, d / h]
  kernels::cuda::PoolSums landmark_sums = {};
  std::byte* reduced_taps = nullptr;   // T [reduced places, f * f * d]
  std::byte* reduced = nullptr;        // T [reduced places, d]
  std::byte* key_inputs = nullptr;     // T [projected keys, d]
  std::byte* global_inputs = nullptr;  // T [globals, d]
  std::byte* global_outs = nullptr;    // T [globals, d]
  std::byte* global_q = nullptr;       // T [rows, d], of global rows.
  std::byte* global_kv = nullptr;      // T [rows, 2d]
  float* bias = nullptr;               // [heads, joined entries]
  float* tops = nullptr;               // Performer's.
  float* sums = nullptr;
  std::byte* partials = nullptr;  // Unfinished attention.
  // After the last block, over the same memory.
  float* last = nullptr;    // [rows, d] after the last norm, or the class rows, [images, d].
  float* scores = nullptr;  // [rows] zeros: means of all rows.
  kernels::cuda::PoolSums pool = {};
};

struct DeviceVilMemory {
  std::vector<DeviceVilBuffers> stages;
  float* results = nullptr;
};

// `pieces`: of means over all tokens, 0 where there are none. `results`: floats that come back.
DeviceVilMemory CarveDeviceVil(const VilConfig& config, Compute compute,
                               std::span<const DeviceVilStage> stages, int64_t pieces,
                               int64_t results, Carver& carver);

}  // namespace longview::models
