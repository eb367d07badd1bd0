// The host's side of a batch on a device: its plans, and the lists of rows that kernels read, on
// their way through pinned memory. Made once per batch, read by every layer.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernels/cuda/pool/pool_api.h"
#include "kernels/cuda/rows/rows_api.h"
#include "models/device/device_attention.h"
#include "models/device/staged_lists.h"
#include "models/encoder/sequence.h"
#include "models/longformer/config.h"
#include "models/longformer/layer_plan.h"

namespace longview::models {

// Neighbouring sequences with equally many folded global rows, which go through the device
// together.
struct FoldBatch {
  kernels::cuda::FoldShape shape = {};
  int32_t longest = 0;  // In tokens.
  int32_t pieces = 0;
  // On the device.
  const int32_t* rows = nullptr;      // [sequences * count] rows of x
  const int32_t* out_rows = nullptr;  // [sequences * count] rows of the layer's output
  const int32_t* begins = nullptr;    // [sequences] rows of x
  const int32_t* ends = nullptr;
  const kernels::cuda::PoolPiece* piece_list = nullptr;
  const int32_t* piece0 = nullptr;  // [sequences + 1]

  int64_t globals() const { return int64_t{shape.sequences} * shape.count; }
  int64_t columns() const { return int64_t{shape.count} * shape.heads; }  // Of a sequence.
};

struct DeviceLayerPlan {
  LayerPlan host;
  DevicePlan band, full;
  std::vector<FoldBatch> folds;
  // On the device; lists of `host` by the same names.
  const int32_t* local_rows = nullptr;
  const int32_t* query_rows = nullptr;
  const int32_t* out_rows = nullptr;
  const int32_t* unfolded_rows = nullptr;
  const int32_t* unfolded_outs = nullptr;
};

// Plans of all layers of some sequences.
class DeviceBatch {
 public:
  using Sequences = std::span<const EncoderSequence* const>;

  // `subset`: the last layer computes the wanted rows only. REQUIRES: sequences outlive it.
  DeviceBatch(const LongformerConfig& config, Sequences sequences, bool subset);

  // Bytes that Stage takes.
  size_t list_bytes() const { return list_bytes_; }
  // Writes lists and plans; what the members below name is valid once the lists are copied.
  void Stage(StagedLists& lists);

  const DeviceLayerPlan& PlanOf(int layer) const;
  std::span<const DeviceLayerPlan> plans() const { return plans_; }

  int64_t rows() const { return offsets_.back(); }
  int64_t outputs() const { return plans_[pattern_.back()].host.outputs; }
  size_t size() const { return sequences_.size(); }
  const EncoderSequence& sequence(size_t i) const { return *sequences_[i]; }

  // On the device, [rows].
  struct Tokens {
    const int32_t* ids = nullptr;
    const int32_t* positions = nullptr;
    const int32_t* types = nullptr;
    const uint8_t* roles = nullptr;
  };
  const Tokens& tokens() const { return tokens_; }

 private:
  void StageTokens(StagedLists& lists);
  void StageLayer(DeviceLayerPlan& plan, StagedLists& lists) const;
  void StageFolds(DeviceLayerPlan& plan, StagedLists& lists) const;

  const LongformerConfig& config_;
  const std::vector<const EncoderSequence*> sequences_;
  std::vector<int32_t> offsets_;  // Rows of sequences_, one entry more.
  std::vector<DeviceLayerPlan> plans_;
  std::vector<int> pattern_;  // By layer: index of its plan.
  size_t list_bytes_ = 0;
  Tokens tokens_;
};

}  // namespace longview::models
