// The host's side of a prefill on a device: plans, and the lists that kernels read, on their way
// through pinned memory. Made once per pass, read by every layer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/cuda/pool/pool_api.h"
#include "kernels/cuda/token/token_api.h"
#include "models/device/device_attention.h"
#include "models/device/staged_lists.h"
#include "models/transformer_ls/pass_layout.h"

namespace longview::models {

// Blocks of a strip, looked up by absolute slots. On the device.
struct DeviceBlockTable {
  const int32_t* blocks = nullptr;
  const int32_t* offsets = nullptr;  // By run of the group.
};

// The rows of one call of attention.
struct DeviceLsGroup {
  int64_t row0 = 0, rows = 0;
  bool fresh = false;  // Keys of its own rows are a source.
  DevicePlan plan;
  std::vector<DeviceBlockTable> tables;                       // By strip.
  const kernels::cuda::CacheRowPlace* window_rows = nullptr;  // [rows]
};

// Pieces of segments. On the device, in the order of rows.
struct DevicePieces {
  const kernels::cuda::PoolRun* runs = nullptr;
  int32_t count = 0;
};

struct DeviceLsLists {
  const int32_t* ids = nullptr;  // [rows]
  std::array<DeviceLsGroup, 2> groups;
  DevicePieces closing;                                      // They end their segments.
  const kernels::cuda::CacheRowPlace* late_rows = nullptr;   // [closing.count * rank]
  const kernels::cuda::CacheRowPlace* early_rows = nullptr;  // The same; LsSchedule::kBlocks.
  DevicePieces open;                                         // They do not.
  const int32_t* wanted = nullptr;  // [layout.wanted] rows of logits, by run.
};

// Bytes of one segment's sums.
size_t DeviceStateBytes(const LsLmConfig& config);

// Stages the lists of a layout without decoding runs. `step` has appended its runs; null: bytes are
// counted, for no memory. `states` [closing pieces] on the device, for segments that begin and end
// in the pass.
DeviceLsLists StageLists(const LsLmConfig& config, const LsPassLayout& layout,
                         const kernels::ProjectionCache* cache, const kernels::CacheStep* step,
                         std::byte* states, StagedLists& lists);

}  // namespace longview::models
