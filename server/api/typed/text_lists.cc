// Typed calls on many texts: each is an item of its own.
#include <memory>
#include <utility>
#include <vector>

#include "server/api/api.h"
#include "server/api/calls/context.h"
#include "server/api/calls/item_group.h"
#include "server/api/calls/list_answer.h"
#include "server/api/typed/text_requests.h"
#include "server/api/typed/text_responses.h"

namespace longview::server {
namespace {

// Runs every request. Errors that have nothing to do with the texts fail the call always. Replies
// inside the call to what is wrong before the engine.
template <typename ProtoRequest, typename Response>
std::shared_ptr<PendingCall> RunTextList(ApiContext& context, const CallInfo& info,
                                         models::Task task, ListRequest<ProtoRequest> list,
                                         Reply<ListAnswer<Response>> reply) {
  const AnswerOptions options{list.top_k, list.return_logits};
  const size_t size = list.items.size();
  const auto refuse = [&](const ModelLabels& labels, const absl::Status& status) {
    reply(context.recorder.Done(info, labels, status, {.items = static_cast<int>(size)}));
    return std::make_shared<PendingCall>(context.engine);
  };
  const absl::StatusOr<ModelHandle> model =
      FindModelForTask(context, list.model, list.version, task);
  if (!model.ok()) return refuse(context.recorder.Labels(list.model), model.status());
  const ModelLabels labels{(*model)->name, (*model)->version};
  std::vector<models::Request> items;
  std::vector<size_t> places;  // Indices of the items in the list.
  std::vector<absl::Status> refused(size);
  for (size_t i = 0; i < size; ++i) {
    if (!list.items[i].ok()) {
      if (!list.partial) return refuse(labels, list.items[i].status());
      refused[i] = list.items[i].status();
      continue;
    }
    absl::StatusOr<models::Request> item = ToModelRequest(*list.items[i], (*model)->model->info());
    list.items[i] = ProtoRequest();  // Its texts are the item's now.
    if (!item.ok()) return refuse(labels, item.status());
    items.push_back(*std::move(item));
    places.push_back(i);
  }
  auto done = [&context, info, labels, options, field = list.field, partial = list.partial,
               places = std::move(places), refused = std::move(refused),
               reply = std::move(reply)](GroupEnd end) mutable {
    CallRecorder::Counts counts = CountsOf(end);
    counts.items = static_cast<int>(refused.size());
    if (!end.status.ok()) {
      const absl::Status named = refused.size() > 1
                                     ? OfElement(end.status, field, places[end.failed])
                                     : OfField(end.status, field);
      return reply(context.recorder.Done(info, labels, named, counts));
    }
    ListAnswer<Response> answer{labels, {}, TotalsOf(end.completed)};
    for (const absl::Status& failed : refused) {
      answer.results.push_back(failed.ok() ? absl::StatusOr<Response>(Response()) : failed);
    }
    size_t bytes = 0;
    absl::Status status;
    for (size_t i = 0; i < end.completed.size() && status.ok(); ++i) {
      absl::StatusOr<Response>& result = answer.results[places[i]];
      if (partial && !end.errors[i].ok()) {
        result = context.recorder.Shown(info, OfField(end.errors[i], field));
        continue;
      }
      status = FillResponse(options, std::move(end.completed[i]), *result);
      bytes += result->ByteSizeLong();
      if (status.ok()) status = CheckAnswerSize(context, bytes);
    }
    status = context.recorder.Done(info, labels, status, counts);
    if (!status.ok()) return reply(status);
    reply(std::move(answer));
  };
  if (items.empty()) {
    done(GroupEnd());
    return std::make_shared<PendingCall>(context.engine);
  }
  return ItemGroup::Start(context, info, *model, std::move(items),
                          list.partial ? ItemGroup::OnFailure::kKeep : ItemGroup::OnFailure::kEnd,
                          std::move(done));
}

}  // namespace

Api::Pending Api::ClassifyList(const CallInfo& info,
                               ListRequest<longview::v1::ClassifyRequest> list,
                               ListReply<longview::v1::ClassifyResponse> reply) {
  return RunTextList(context_, info, models::Task::kTextClassification, std::move(list),
                     std::move(reply));
}

Api::Pending Api::ClassifyTokensList(const CallInfo& info,
                                     ListRequest<longview::v1::ClassifyTokensRequest> list,
                                     ListReply<longview::v1::ClassifyTokensResponse> reply) {
  return RunTextList(context_, info, models::Task::kTokenClassification, std::move(list),
                     std::move(reply));
}

Api::Pending Api::FillMaskList(const CallInfo& info,
                               ListRequest<longview::v1::FillMaskRequest> list,
                               ListReply<longview::v1::FillMaskResponse> reply) {
  return RunTextList(context_, info, models::Task::kFillMask, std::move(list), std::move(reply));
}

Api::Pending Api::EmbedList(const CallInfo& info, ListRequest<longview::v1::EmbedRequest> list,
                            ListReply<longview::v1::EmbedResponse> reply) {
  return RunTextList(context_, info, models::Task::kEmbedding, std::move(list), std::move(reply));
}

}  // namespace longview::server
