// The typed calls on one document or image: one item in, one message out.
#pragma once

#include <memory>
#include <utility>

#include "server/api/calls/context.h"
#include "server/api/typed/text_requests.h"
#include "server/api/typed/text_responses.h"
#include "server/api/typed/vision_calls.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {

// Submits one item and answers with what FillResponse makes of it. Errors found before the
// engine are replied inside the call.
template <typename ProtoRequest, typename Response>
std::shared_ptr<PendingCall> RunTypedCall(ApiContext& context, const CallInfo& info,
                                          models::Task task, const ProtoRequest& proto,
                                          AnswerOptions options, Reply<Response> reply) {
  auto pending = std::make_shared<PendingCall>(context.engine);
  absl::StatusOr<ModelHandle> model =
      FindModelForTask(context, proto.model(), proto.version(), task);
  if (!model.ok()) {
    reply(context.recorder.Done(info, context.recorder.Labels(proto.model()), model.status(), {}));
    return pending;
  }
  const ModelHandle handle = *std::move(model);
  const ModelLabels labels{handle->name, handle->version};
  absl::StatusOr<models::Request> request = ToModelRequest(proto, handle->model->info());
  if (!request.ok()) {
    reply(context.recorder.Done(info, labels, request.status(), {}));
    return pending;
  }
  auto done = [&context, info, labels, options,
               reply = std::move(reply)](absl::StatusOr<Completed> completed) mutable {
    if (!completed.ok()) {
      context.statistics.RequestFailed(labels.model, labels.version,
                                       absl::ToDoubleSeconds(SteadyNow() - info.arrival));
      reply(context.recorder.Done(info, labels, WithParam(completed.status()), {.items = 1}));
      return;
    }
    context.statistics.ItemDone(labels.model, labels.version, *completed);
    const models::ItemUsage& usage = completed->answer.usage;
    const CallRecorder::Counts counts{1, usage.input_tokens, int64_t{usage.width} * usage.height};
    Response response;
    response.set_model(labels.model);
    response.set_version(labels.version);
    absl::Status status = FillResponse(options, *std::move(completed), response);
    if (status.ok()) status = CheckAnswerSize(context, response.ByteSizeLong());
    status = context.recorder.Done(info, labels, status, counts);
    if (status.ok()) {
      reply(std::move(response));
    } else {
      reply(status);
    }
  };
  pending->Submit(handle, *std::move(request), info, std::move(done));
  return pending;
}

}  // namespace longview::server
