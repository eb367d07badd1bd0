// A Longformer's longest document, whatever is global in it, for which a device must have room.
#pragma once

#include "absl/functional/function_ref.h"
#include "models/device/device_run.h"
#include "models/encoder/ragged_batch.h"
#include "models/longformer/config.h"

namespace longview::models {

// The most that one document of `max_tokens` tokens needs, by what `bytes` says of a batch.
DeviceRunBytes LongestLongformerBytes(
    const LongformerConfig& config, int max_tokens,
    absl::FunctionRef<DeviceRunBytes(RaggedBatch::Sequences)> bytes);

}  // namespace longview::models
