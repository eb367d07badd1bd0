// The typed text answers.
#pragma once

#include "longview/v1/models.pb.h"
#include "longview/v1/text.pb.h"
#include "server/api/calls/call_totals.h"
#include "server/engine/engine.h"

namespace longview::server {

// The options of a request that its answer depends on.
struct AnswerOptions {
  int top_k = 0;  // 0 = all.
  bool return_logits = false;
};

// Usage and timing.
template <typename Proto>
void FillShared(const Completed& done, Proto& out) {
  *out.mutable_usage() = ToUsage(done.answer.usage);
  auto& timing = *out.mutable_timing();
  timing.set_queue_seconds(ToMicroseconds(done.queue_seconds));
  timing.set_compute_seconds(ToMicroseconds(done.compute_seconds));
  timing.set_total_seconds(ToMicroseconds(done.total_seconds));
  timing.set_batch_items(done.batch_items);
}

// Fill everything but model and version. INTERNAL if the model left out a tensor that it was
// asked for.
absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::ClassifyResponse& out);
absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::ClassifyTokensResponse& out);
absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::AnswerQuestionResponse& out);
absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::FillMaskResponse& out);
absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::EmbedResponse& out);

}  // namespace longview::server
