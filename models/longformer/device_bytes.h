// What Longformer's documents need of a device's workspace.
#pragma once

#include "models/device/device_workspace.h"
#include "models/longformer/device_batch.h"

namespace longview::models {

// What a batch needs, exactly.
DeviceRunBytes BytesOf(const LongformerConfig& config, Compute compute, const DeviceBatch& batch);

// The most that one document needs, whatever its masks and the rows it wants. Buffers grow with the
// number of global tokens, folded or not, and of wanted rows; lists are bounded as if every row
// were a tile of its own.
DeviceRunBytes LongestDocumentBytes(const LongformerConfig& config, Compute compute,
                                    int max_tokens);

}  // namespace longview::models
