#include "server/api/infer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/api/infer_outputs.h"
#include "server/api/infer_parameters.h"
#include "server/api/tensor_encode.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;

// A request checked and ready to run.
struct Prepared {
  ModelHandle model;
  std::vector<models::Request> items;
  OutputPlan plan;
  std::optional<absl::Duration> timeout;
};

absl::Status PrepareItems(const ApiContext& context, const ModelInferRequest& request,
                          Prepared& out) {
  const models::ModelInfo& info = out.model->model->info();
  const auto inputs = ReadInputs(request, info);
  if (!inputs.ok()) return inputs.status();
  const auto parameters = ReadParameters(request.parameters(), info.task);
  if (!parameters.ok()) return parameters.status();
  const auto shape = MeasureItems(*inputs, info, context.options.max_items);
  if (!shape.ok()) return shape.status();
  auto plan = PlanOutputs(request, info, *shape, parameters->pooling);
  if (!plan.ok()) return plan.status();
  const auto bytes = static_cast<size_t>(LeastAnswerBytes(*plan, *shape));
  if (auto status = CheckAnswerSize(context, bytes); !status.ok()) return status;
  auto items = BuildItems(*inputs, info, *parameters, plan->per_token);
  if (!items.ok()) return items.status();
  for (models::Request& item : *items) {
    item.tensors = plan->tensors;
    item.typed = plan->typed;
  }
  out.items = *std::move(items);
  out.plan = *std::move(plan);
  out.timeout = parameters->timeout;
  return absl::OkStatus();
}

int64_t Micros(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

// Models call token ids by the name of the typed API; this protocol's is input_ids.
absl::Status InTensorNames(const absl::Status& status) {
  constexpr std::string_view kTyped = "token_ids";
  const std::string message(status.message());
  if (!message.starts_with(kTyped)) return status;
  const std::string renamed = absl::StrCat("input_ids", message.substr(kTyped.size()));
  return MakeError(status.code(), renamed, GetErrorDetail(status));
}

// The items of one request on their way; lives until the last has answered.
class InferJob : public std::enable_shared_from_this<InferJob> {
 public:
  InferJob(ApiContext& context, CallInfo info, const ModelInferRequest& request, ModelHandle model,
           OutputPlan plan, Reply<ModelInferResponse> reply)
      : context_(context),
        info_(std::move(info)),
        request_id_(request.id()),
        raw_(request.raw_input_contents_size() > 0),
        model_(std::move(model)),
        plan_(std::move(plan)),
        reply_(std::move(reply)),
        pending_(std::make_shared<PendingCall>(context.engine)) {}

  std::shared_ptr<PendingCall> Start(std::vector<models::Request> items) {
    done_.resize(items.size());
    waiting_ = items.size();
    for (size_t i = 0; i < items.size(); ++i) {
      auto self = shared_from_this();
      pending_->Submit(model_, std::move(items[i]), info_,
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
        context_.statistics.ItemDone(model_->name, model_->version, *completed);
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
    context_.statistics.RequestFailed(model_->name, model_->version,
                                      absl::ToDoubleSeconds(absl::Now() - info_.arrival));
    absl::Status named = WithParam(InTensorNames(status));
    if (done_.size() > 1) named = Prefixed(absl::StrCat("item ", index, ": "), named);
    reply_(
        context_.recorder.Done(info_, Labels(), named, {.items = static_cast<int>(done_.size())}));
  }

  void Answer() {
    ModelInferResponse response;
    int64_t tokens = 0;
    for (const Completed& item : done_) tokens += item.answer.usage.input_tokens;
    AddParameters(response);
    absl::Status status = AddOutputs(response);
    if (status.ok()) status = CheckAnswerSize(context_, response.ByteSizeLong());
    status =
        context_.recorder.Done(info_, Labels(), status, {static_cast<int>(done_.size()), tokens});
    if (status.ok()) {
      reply_(std::move(response));
    } else {
      reply_(status);
    }
  }

  absl::Status AddOutputs(ModelInferResponse& response) {
    response.set_model_name(model_->name);
    response.set_model_version(model_->version);
    response.set_id(request_id_);
    std::vector<models::Answer> answers;
    for (Completed& item : done_) answers.push_back(std::move(item.answer));
    for (const PlannedOutput& output : plan_.outputs) {
      const auto tensor = JoinOutput(output, model_->model->info(), answers);
      if (!tensor.ok()) return tensor.status();
      AppendOutput(*tensor, raw_, response);
    }
    return absl::OkStatus();
  }

  void AddParameters(ModelInferResponse& response) const {
    double queue = 0;
    double compute = 0;
    int batch_items = 0;
    int truncated = 0;
    for (const Completed& item : done_) {
      queue = std::max(queue, item.queue_seconds);
      compute = std::max(compute, item.compute_seconds);
      batch_items = std::max(batch_items, item.batch_items);
      truncated += item.answer.usage.truncated_tokens;
    }
    auto& parameters = *response.mutable_parameters();
    parameters["queue_us"].set_int64_param(Micros(queue));
    parameters["compute_us"].set_int64_param(Micros(compute));
    parameters["batch_items"].set_int64_param(batch_items);
    parameters["truncated_tokens"].set_int64_param(truncated);
  }

  ModelLabels Labels() const { return {model_->name, model_->version}; }

  ApiContext& context_;
  const CallInfo info_;
  const std::string request_id_;
  const bool raw_;
  const ModelHandle model_;
  const OutputPlan plan_;
  Reply<ModelInferResponse> reply_;  // Runs once: by the first failure or the last answer.
  const std::shared_ptr<PendingCall> pending_;

  std::mutex mutex_;
  std::vector<Completed> done_;  // Under mutex_ until the last answer is in.
  size_t waiting_ = 0;           // Under mutex_.
  bool failed_ = false;          // Under mutex_.
};

}  // namespace

std::shared_ptr<PendingCall> RunInfer(ApiContext& context, const CallInfo& info,
                                      const ModelInferRequest& request,
                                      Reply<ModelInferResponse> reply) {
  const auto refuse = [&](const absl::Status& status, const ModelLabels& labels) {
    reply(context.recorder.Done(info, labels, status, {}));
    return std::make_shared<PendingCall>(context.engine);
  };
  Prepared prepared;
  absl::StatusOr<ModelHandle> model =
      FindModel(context, request.model_name(), request.model_version());
  if (!model.ok()) return refuse(model.status(), context.recorder.Labels(request.model_name()));
  prepared.model = *std::move(model);
  if (auto status = PrepareItems(context, request, prepared); !status.ok()) {
    return refuse(status, {prepared.model->name, prepared.model->version});
  }
  CallInfo timed = info;
  if (prepared.timeout) {
    timed.deadline = std::min(timed.deadline, timed.arrival + *prepared.timeout);
  }
  auto job =
      std::make_shared<InferJob>(context, std::move(timed), request, std::move(prepared.model),
                                 std::move(prepared.plan), std::move(reply));
  return job->Start(std::move(prepared.items));
}

}  // namespace longview::server
