#include "models/status_macros.h"
#include "server/api/api.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/calls/call_totals.h"
#include "server/api/calls/item_group.h"
#include "server/api/typed/single_item_calls.h"
#include "server/api/typed/text_requests.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using longview::v1::EmbedResponse;

std::string_view NameOf(models::Chunking chunking) {
  switch (chunking) {
    case models::Chunking::kLate:
      return "late";
    case models::Chunking::kWindows:
      return "windows";
    case models::Chunking::kSeparate:
      return "separate";
  }
  return "";
}

// The parts of a plan that its answer needs.
struct Chunks {
  models::Chunking chunking;
  std::vector<models::TextRange> ranges;
  std::vector<models::ChunkPlan::Source> sources;
};

// The vector numbered `index` of an item's embedding, [d] or [chunks, d].
absl::StatusOr<std::span<const float>> VectorOf(const models::Answer& answer, int index) {
  const models::HostTensor* const tensor = answer.Find("embedding");
  if (tensor == nullptr || tensor->shape.empty()) {
    return absl::InternalError("the model gave no embedding");
  }
  const auto width = static_cast<size_t>(tensor->shape.back());
  const auto begin = width * static_cast<size_t>(index);
  if (begin + width > tensor->floats().size()) {
    return absl::InternalError("the model gave too few vectors");
  }
  return tensor->floats().subspan(begin, width);
}

absl::StatusOr<EmbedResponse> Joined(const Chunks& chunks, const std::vector<Completed>& items) {
  EmbedResponse out;
  out.set_chunking(std::string(NameOf(chunks.chunking)));
  for (size_t i = 0; i < chunks.sources.size(); ++i) {
    longview::v1::TextRange* const added = out.add_chunks();
    added->set_start(chunks.ranges[i].start);
    added->set_end(chunks.ranges[i].end);
    const auto [item, vector] = chunks.sources[i];
    ASSIGN_OR_RETURN(const auto values, VectorOf(items[static_cast<size_t>(item)].answer, vector));
    out.mutable_embedding()->Add(values.begin(), values.end());
  }
  const CallTotals totals = TotalsOf(items);
  *out.mutable_usage() = ToUsage(totals.usage);
  *out.mutable_timing() = ToTiming(totals);
  return out;
}

// One call for chunks: planned, then run. Shared by its callbacks.
struct ChunksCall {
  ApiContext& context;
  CallInfo info;
  ModelHandle model;
  Reply<EmbedResponse> reply;

  ModelLabels labels() const { return {model->name, model->version}; }

  void Fail(const absl::Status& status) {
    reply(context.recorder.Done(info, labels(), WithParam(status), {.items = 1}));
  }

  void Finish(const Chunks& chunks, const GroupEnd& end) {
    if (!end.status.ok()) return Fail(end.status);
    absl::StatusOr<EmbedResponse> joined = Joined(chunks, end.completed);
    absl::Status status = joined.status();
    if (status.ok()) {
      joined->set_model(model->name);
      joined->set_version(model->version);
      status = CheckAnswerSize(context, joined->ByteSizeLong());
    }
    status = context.recorder.Done(info, labels(), status, CountsOf(end));
    if (!status.ok()) return reply(status);
    reply(*std::move(joined));
  }
};

std::shared_ptr<PendingCall> RunChunks(ApiContext& context, const CallInfo& info,
                                       const ModelHandle& model, models::Request request,
                                       Reply<EmbedResponse> reply) {
  auto pending = std::make_shared<PendingCall>(context.engine);
  std::shared_ptr<ChunksCall> call(new ChunksCall{context, info, model, std::move(reply)});
  auto planned = [call, pending](absl::StatusOr<models::ChunkPlan> plan) {
    if (!plan.ok()) {
      call->context.statistics.RequestFailed(
          call->model->name, call->model->version,
          absl::ToDoubleSeconds(SteadyNow() - call->info.arrival));
      return call->Fail(plan.status());
    }
    Chunks chunks = {plan->chunking, std::move(plan->ranges), std::move(plan->sources)};
    auto done = [call, chunks = std::move(chunks)](const GroupEnd& end) {
      call->Finish(chunks, end);
    };
    ItemGroup::Start(call->context, call->info, call->model, std::move(plan->items),
                     ItemGroup::OnFailure::kEnd, std::move(done), ItemGroup::Admitted::kTogether,
                     pending);
  };
  pending->PlanChunks(model, std::move(request), info, std::move(planned));
  return pending;
}

}  // namespace

Api::Pending Api::Embed(const CallInfo& info, const EmbedRequest& request,
                        Reply<EmbedResponse> reply) {
  ApiContext& context = context_;
  if (!AsksForChunks(request)) {
    return RunTypedCall(context, info, models::Task::kEmbedding, request, {}, std::move(reply));
  }
  const auto refuse = [&](const ModelLabels& labels, const absl::Status& status) {
    reply(context.recorder.Done(info, labels, status, {}));
    return std::make_shared<PendingCall>(context.engine);
  };
  const absl::StatusOr<ModelHandle> model =
      FindModelForTask(context, request.model(), request.version(), models::Task::kEmbedding);
  if (!model.ok()) return refuse(context.recorder.Labels(request.model()), model.status());
  absl::StatusOr<models::Request> wanted = ToModelRequest(request, (*model)->model->info());
  if (!wanted.ok()) return refuse({(*model)->name, (*model)->version}, wanted.status());
  return RunChunks(context, info, *model, *std::move(wanted), std::move(reply));
}

}  // namespace longview::server
