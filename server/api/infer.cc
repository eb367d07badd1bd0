#include "server/api/infer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/api/generation_call.h"
#include "server/scheduler/steady_clock.h"

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

// The items of one request on their way; lives until the last has answered.
class InferJob : public std::enable_shared_from_this<InferJob> {
 public:
  InferJob(ApiContext& context, CallInfo info, InferFrame frame, Reply<ModelInferResponse> reply)
      : context_(context),
        info_(std::move(info)),
        frame_(std::move(frame)),
        reply_(std::move(reply)),
        pending_(std::make_shared<PendingCall>(context.engine)) {}

  std::shared_ptr<PendingCall> Start(std::vector<models::Request> items) {
    done_.resize(items.size());
    waiting_ = items.size();
    for (size_t i = 0; i < items.size(); ++i) {
      auto self = shared_from_this();
      pending_->Submit(frame_.model, std::move(items[i]), info_,
                       [self = std::move(self), i](absl::StatusOr<Completed> completed) {
                         self->ItemDone(i, std::move(completed));
                       });
    }
    return pending_;
  }

 private:
  void ItemDone(size_t index, absl::StatusOr<Completed> completed) {
    bool last = false;
    bool first_failure = false;
    {
      std::lock_guard lock(mutex_);
      first_failure = !completed.ok() && !failed_;
      failed_ = failed_ || !completed.ok();
      if (completed.ok()) {
        context_.statistics.ItemDone(frame_.model->name, frame_.model->version, *completed);
        done_[index] = *std::move(completed);
      }
      last = --waiting_ == 0 && !failed_;
    }
    if (first_failure) {
      // Nobody waits for the others any more. They still come by here.
      pending_->Cancel();
      Fail(index, completed.status());
    } else if (last) {
      Answer();
    }
  }

  void Fail(size_t index, const absl::Status& status) {
    context_.statistics.RequestFailed(frame_.model->name, frame_.model->version,
                                      absl::ToDoubleSeconds(SteadyNow() - info_.arrival));
    reply_(context_.recorder.Done(info_, Labels(), InTensorNames(status, index, done_.size()),
                                  {.items = static_cast<int>(done_.size())}));
  }

  void Answer() {
    int64_t tokens = 0, pixels = 0;
    for (const Completed& item : done_) {
      const models::ItemUsage& usage = item.answer.usage;
      tokens += usage.input_tokens;
      pixels += int64_t{usage.width} * usage.height;
    }
    const auto items = static_cast<int>(done_.size());
    auto response = JoinItems(context_, frame_, done_);
    const absl::Status status =
        context_.recorder.Done(info_, Labels(), response.status(), {items, tokens, pixels});
    if (status.ok()) {
      reply_(std::move(response));
    } else {
      reply_(status);
    }
  }

  ModelLabels Labels() const { return {frame_.model->name, frame_.model->version}; }

  ApiContext& context_;
  const CallInfo info_;
  const InferFrame frame_;
  Reply<ModelInferResponse> reply_;  // Runs once: by the first failure or the last answer.
  const std::shared_ptr<PendingCall> pending_;

  std::mutex mutex_;
  std::vector<Completed> done_;  // Under mutex_ until the last answer is in.
  size_t waiting_ = 0;           // Under mutex_.
  bool failed_ = false;          // Under mutex_.
};

// A generator's items: the same, but steps of others run between theirs.
std::shared_ptr<PendingCall> Collect(ApiContext& context, const CallInfo& info,
                                     PreparedInfer prepared, Reply<ModelInferResponse> reply) {
  GenerationJob job{prepared.frame.model, std::move(prepared.items), &InTensorNames};
  auto response = std::make_shared<ModelInferResponse>();
  GenerationSink sink;
  sink.answer = [&context, frame = std::move(prepared.frame),
                 response](std::vector<Completed>& completed) -> absl::Status {
    auto joined = JoinItems(context, frame, completed);
    if (joined.ok()) *response = *std::move(joined);
    return joined.status();
  };
  sink.on_end = [response, reply = std::move(reply)](const GenerationEnd& end) mutable {
    if (!end.status.ok()) return reply(end.status);
    reply(std::move(*response));
  };
  return StartGeneration(context, info, std::move(job), std::move(sink));
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

std::shared_ptr<PendingCall> RunInfer(ApiContext& context, const CallInfo& info,
                                      const ModelInferRequest& request,
                                      Reply<ModelInferResponse> reply) {
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
  auto job = std::make_shared<InferJob>(context, info, std::move(prepared.frame), std::move(reply));
  return job->Start(std::move(prepared.items));
}

}  // namespace longview::server
