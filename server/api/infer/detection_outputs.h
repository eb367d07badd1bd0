// Output tensors of detectors, made from the detections of the only item.
#pragma once

#include <cstddef>

#include "models/model.h"
#include "server/api/infer/infer_outputs.h"

namespace longview::server {

// boxes FP32 [N, 4], scores FP32 [N], labels INT64 [N], label_names BYTES [N], masks BYTES [N]
// (COCO run lengths as JSON) or BOOL [N, H, W]. REQUIRES: one of these kinds, one answer.
models::HostTensor MakeDetectionOutput(const PlannedOutput& output, const models::Answer& answer);

// Bytes of the masks as BOOL: of large pictures too many to make before they are checked.
size_t MaskPixelBytes(const models::Answer& answer);

}  // namespace longview::server
