// The typed image calls as the model sees them, and their answers; run by RunTypedCall
// (single_item_calls.h), as one item in and one message out is the same for text and images.
#pragma once

#include "absl/status/statusor.h"
#include "longview/v1/vision.pb.h"
#include "models/model.h"
#include "server/api/typed/text_responses.h"

namespace longview::server {

// INVALID_ARGUMENT names the field. Thread-safe.
absl::StatusOr<models::Request> ToModelRequest(const longview::v1::ClassifyImageRequest& request,
                                               const models::ModelInfo& info);
absl::StatusOr<models::Request> ToModelRequest(const longview::v1::ExtractFeaturesRequest& request,
                                               const models::ModelInfo& info);
absl::StatusOr<models::Request> ToModelRequest(const longview::v1::DetectObjectsRequest& request,
                                               const models::ModelInfo& info);

// Best first; masks as run lengths in COCO's form.
absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::DetectObjectsResponse& out);

// One map per stride, as the model gave them.
absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::ExtractFeaturesResponse& out);

}  // namespace longview::server
