// One request of ModelStreamInfer: generators answer piece by piece, all others once.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "server/api/context.h"

namespace longview::server {

// Pieces carry the tensors of their new text, `sequence_index` (item x sequences + sample) and
// triton_final_response, which is true in the last answer only; that one also has the totals of
// ModelInfer. An error is the last answer: error_message with the request's id. The end of the
// stream is always OK.
//
// Each request has at least one answer that is not empty, and its last one is final: the empty
// final answers that triton_enable_empty_final_response asks for are never due.
//
// `on_ready` as PieceFlow's; it may run inside this call.
std::unique_ptr<InferStream> StartInferStream(ApiContext& context, const CallInfo& info,
                                              const inference::ModelInferRequest& request,
                                              absl::AnyInvocable<void()> on_ready);

// A request that is refused before it is parsed: one error with its names. It has been recorded.
std::unique_ptr<InferStream> RefusedInferStream(const inference::ModelInferRequest& names,
                                                const absl::Status& status);

}  // namespace longview::server
