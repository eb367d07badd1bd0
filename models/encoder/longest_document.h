// A text encoder's longest document, for which a device must have room.
#pragma once

#include "absl/functional/function_ref.h"
#include "models/device/device_run.h"
#include "models/encoder/ragged_batch.h"

namespace longview::models {

// The most that one document of up to `tokens` tokens needs as a part, whatever its masks, its
// padding and the rows it wants, by what `most_bytes` says of a batch.
DeviceRunBytes LongestDocumentBytes(
    int tokens, absl::FunctionRef<DeviceRunBytes(RaggedBatch::Sequences)> most_bytes);

}  // namespace longview::models
