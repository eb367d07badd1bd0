#include "server/api/infer/infer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/api/api.h"
#include "server/api/calls/generation_call.h"
#include "server/api/calls/item_group.h"

namespace longview::server {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;

absl::StatusOr<ModelInferResponse> JoinItems(const ApiContext& context, const InferFrame& frame,
                                             std::vector<Completed>& completed) {
  const CallTotals totals = TotalsOf(completed);
  std::vector<models::Answer> answers;
  for (Completed& item : completed) answers.push_back(std::move(item.answer));
  auto response = BuildInferResponse(context, frame, answers);
  if (response.ok()) AddTotals(totals, *response);
  return response;
}

// A generator's items: the same, but steps of others run between theirs.
std::shared_ptr<PendingCall> Collect(ApiContext& context, const CallInfo& info,
                                     PreparedInfer prepared, Reply<ModelInferResponse> reply) {
  GenerationJob job{prepared.frame.model, std::move(prepared.items), &InTensorNames};
  auto response = std::make_shared<ModelInferResponse>();
  job.answer = [&context, frame = std::move(prepared.frame),
                response](std::vector<Completed>& completed) -> absl::Status {
    auto joined = JoinItems(context, frame, completed);
    if (joined.ok()) *response = *std::move(joined);
    return joined.status();
  };
  auto done = [response, reply = std::move(reply)](GenerationEnd end) mutable {
    end.held = {};  // The answers have become the response.
    if (!end.status.ok()) return reply(end.status);
    reply(std::move(*response));
  };
  return CollectGeneration(context, info, std::move(job), std::move(done));
}

}  // namespace

absl::StatusOr<PreparedInfer> FindAndPrepare(ApiContext& context, const CallInfo& info,
                                             const ModelInferRequest& request) {
  PreparedInfer prepared;
  absl::StatusOr<ModelHandle> model =
      FindModel(context, request.model_name(), request.model_version());
  if (!model.ok()) {
    return context.recorder.Done(info, context.recorder.Labels(request.model_name()),
                                 model.status(), {});
  }
  prepared.frame.model = *std::move(model);
  if (auto status = PrepareInfer(context, request, prepared); !status.ok()) {
    const ModelLabels labels{prepared.frame.model->name, prepared.frame.model->version};
    return context.recorder.Done(info, labels, status, {});
  }
  return prepared;
}

CallInfo WithTimeout(CallInfo info, const PreparedInfer& prepared) {
  if (prepared.timeout) info.deadline = std::min(info.deadline, info.arrival + *prepared.timeout);
  return info;
}

Api::Pending Api::Infer(const CallInfo& info, const ModelInferRequest& request,
                        Reply<ModelInferResponse> reply) {
  ApiContext& context = context_;
  absl::StatusOr<PreparedInfer> prepared = FindAndPrepare(context, info, request);
  if (!prepared.ok()) {
    reply(prepared.status());
    return std::make_shared<PendingCall>(context.engine);
  }
  return RunPrepared(context, WithTimeout(info, *prepared), *std::move(prepared), std::move(reply));
}

std::shared_ptr<PendingCall> RunPrepared(ApiContext& context, const CallInfo& info,
                                         PreparedInfer prepared, Reply<ModelInferResponse> reply) {
  if (Generates(prepared.frame.model->model->info().task)) {
    return Collect(context, info, std::move(prepared), std::move(reply));
  }
  const ModelHandle model = prepared.frame.model;
  auto done = [&context, info, frame = std::move(prepared.frame),
               reply = std::move(reply)](GroupEnd end) mutable {
    const ModelLabels labels{frame.model->name, frame.model->version};
    const CallRecorder::Counts counts = CountsOf(end);
    if (!end.status.ok()) {
      const absl::Status named = InTensorNames(end.status, end.failed, end.completed.size());
      return reply(context.recorder.Done(info, labels, named, counts));
    }
    auto response = JoinItems(context, frame, end.completed);
    const absl::Status status = context.recorder.Done(info, labels, response.status(), counts);
    if (status.ok()) {
      reply(std::move(response));
    } else {
      reply(status);
    }
  };
  return ItemGroup::Start(context, info, model, std::move(prepared.items),
                          ItemGroup::OnFailure::kEnd, std::move(done));
}

}  // namespace longview::server
