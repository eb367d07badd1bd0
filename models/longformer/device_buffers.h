// The device memory of one batch: sized from its plans, carved out of the model's workspace, reused
// by every layer. encoder_buffers.h with the device's shapes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/dense/compute.h"
#include "models/dense/scratch.h"
#include "models/longformer/config.h"
#include "models/longformer/device_batch.h"

namespace longview::models {

// "T" is an element of the compute type. What a linear reads or writes holds kDevicePanelTail rows
// more than it has.
struct DeviceBuffers {
  float* x = nullptr;                      // [rows, H] residual stream
  float* kept = nullptr;                   // [outputs, H] x of a last layer for fewer rows
  std::byte* input = nullptr;              // T [rows, H], x rounded; x itself for fp32
  std::byte* kept_input = nullptr;         // The same of `kept`.
  std::byte* qkv = nullptr;                // T [rows, 3H], later what linears give, [rows, H]
  std::byte* z = nullptr;                  // T [rows, H] attention's output, before: gathered rows
  std::byte* wide = nullptr;               // T [rows, I]
  std::byte* queries = nullptr;            // T [outputs, H], last layer for fewer rows only
  std::byte* global_keys = nullptr;        // T [global key rows, 2H]
  std::byte* global_inputs = nullptr;      // T [global rows, H]
  std::byte* global_queries = nullptr;     // T [global rows, H]
  std::byte* global_out = nullptr;         // T [global rows, H]
  float* global_rows = nullptr;            // [global rows, H]
  float* fold_vectors = nullptr;           // [columns of all sequences, H]
  float* fold_scores = nullptr;            // [rows, columns of a sequence]
  float* fold_means = nullptr;             // [columns of all sequences, H]
  kernels::cuda::PoolSums fold_sums = {};  // Per piece and column.
  std::byte* partials = nullptr;           // Unfinished attention.
};

DeviceBuffers CarveDeviceBuffers(const LongformerConfig& config, Compute compute,
                                 const DeviceBatch& batch, Carver& carver);

}  // namespace longview::models
