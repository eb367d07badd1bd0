// The typed text requests as the model sees them. Checks what needs no tokenizer: which
// fields go together and which values are possible at all.
#pragma once

#include "absl/status/statusor.h"
#include "longview/v1/models.pb.h"
#include "longview/v1/text.pb.h"
#include "models/model.h"

namespace longview::server {

// Token ids as the model takes them, copied.
models::TokenInput ToTokens(const google::protobuf::RepeatedField<int32_t>& ids);

// Whether the answer is a vector for each of several chunks.
bool AsksForChunks(const longview::v1::EmbedRequest& request);

// INVALID_ARGUMENT names the field. Thread-safe.
absl::StatusOr<models::Request> ToModelRequest(const longview::v1::ClassifyRequest& request,
                                               const models::ModelInfo& info);
absl::StatusOr<models::Request> ToModelRequest(const longview::v1::ClassifyTokensRequest& request,
                                               const models::ModelInfo& info);
absl::StatusOr<models::Request> ToModelRequest(const longview::v1::AnswerQuestionRequest& request,
                                               const models::ModelInfo& info);
absl::StatusOr<models::Request> ToModelRequest(const longview::v1::FillMaskRequest& request,
                                               const models::ModelInfo& info);
absl::StatusOr<models::Request> ToModelRequest(const longview::v1::EmbedRequest& request,
                                               const models::ModelInfo& info);

// The subject of an EstimateRequest: a document, a picture by its size, or a number of tokens.
struct EstimateSubject {
  std::optional<models::Request> request;
  int tokens = 0;
};
absl::StatusOr<EstimateSubject> ToEstimateSubject(const longview::v1::EstimateRequest& request,
                                                  const models::ModelInfo& info);

}  // namespace longview::server
