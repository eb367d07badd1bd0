#include "server/api/api.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/tokenizing.h"
#include "server/api/calls/call_totals.h"
#include "server/api/calls/copies.h"
#include "server/api/calls/item_group.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using longview::v1::RerankRequest;
using longview::v1::RerankResponse;
using longview::v1::RerankResult;

absl::Status CheckRequest(const RerankRequest& request, std::string_view documents) {
  const int count = request.documents_size();
  if (count < 1 || count > kMaxRerankDocuments) {
    return BadField(documents,
                    absl::StrCat("has ", count, " elements, expected 1 to ", kMaxRerankDocuments));
  }
  if (request.top_n() < 0) return BadField("top_n", absl::StrCat(request.top_n(), " is below 1"));
  const std::string& direction = request.truncation_direction();
  if (!direction.empty() && direction != "left" && direction != "right") {
    return BadField("truncation_direction",
                    absl::StrCat(Quoted(direction), " is not left or right"));
  }
  if (request.has_max_tokens_per_doc() && request.max_tokens_per_doc() < 1) {
    return BadField("max_tokens_per_doc",
                    absl::StrCat(request.max_tokens_per_doc(), " is below 1"));
  }
  return absl::OkStatus();
}

// Every pair has a copy of the query, whose tokens are found once.
absl::StatusOr<std::vector<models::Request>> Pairs(const ApiContext& context,
                                                   const RerankRequest& request,
                                                   std::string_view documents) {
  Like<models::Request> like;
  like->task = models::Task::kRerank;
  like->text = request.query();
  like->shared_text = std::make_shared<const models::SharedText>();
  if (request.has_truncate()) like->truncate = request.truncate();
  if (request.has_truncate_prompt_tokens()) {
    like->truncate_tokens = request.truncate_prompt_tokens();
  }
  like->truncation_direction = request.truncation_direction();
  if (request.has_max_tokens_per_doc()) like->pair_tokens = request.max_tokens_per_doc();
  auto pairs = like.Copies(static_cast<size_t>(request.documents_size()),
                           {context.options.max_message_bytes, documents, "query"});
  if (!pairs.ok()) return pairs;
  for (size_t i = 0; i < pairs->size(); ++i) {
    (*pairs)[i].text_pair = request.documents(static_cast<int>(i));
  }
  return pairs;
}

// The parts of a request that its answer needs; the request is gone by then.
struct Wanted {
  size_t top_n = 0;
  bool raw_scores = false;
  std::vector<std::string> documents;  // If they are to be returned.
};

RerankResponse Ranked(const Wanted& wanted, std::vector<Completed>& completed) {
  std::vector<std::pair<float, int>> ranks;  // Score and index.
  for (const Completed& pair : completed) {
    const models::PairScore& score = pair.answer.pair_score;
    ranks.emplace_back(wanted.raw_scores ? score.raw : score.score, std::ssize(ranks));
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (wanted.top_n > 0 && wanted.top_n < ranks.size()) ranks.resize(wanted.top_n);
  RerankResponse response;
  for (const auto& [score, index] : ranks) {
    RerankResult& result = *response.add_results();
    result.set_index(index);
    result.set_relevance_score(score);
    if (!wanted.documents.empty()) {
      result.set_document(wanted.documents[static_cast<size_t>(index)]);
    }
  }
  const CallTotals totals = TotalsOf(completed);
  *response.mutable_usage() = ToUsage(totals.usage);
  *response.mutable_timing() = ToTiming(totals);
  return response;
}

}  // namespace

Api::Pending Api::RerankAs(const CallInfo& info, const RerankRequest& request,
                           std::string_view documents, Reply<RerankResponse> reply) {
  ApiContext& context = context_;
  const auto refuse = [&](const ModelLabels& labels, const absl::Status& status) {
    reply(context.recorder.Done(info, labels, status, {.items = request.documents_size()}));
    return std::make_shared<PendingCall>(context.engine);
  };
  const absl::StatusOr<ModelHandle> model =
      FindModelForTask(context, request.model(), request.version(), models::Task::kRerank);
  if (!model.ok()) return refuse(context.recorder.Labels(request.model()), model.status());
  const ModelLabels labels{(*model)->name, (*model)->version};
  if (absl::Status status = CheckRequest(request, documents); !status.ok()) {
    return refuse(labels, status);
  }
  absl::StatusOr<std::vector<models::Request>> pairs = Pairs(context, request, documents);
  if (!pairs.ok()) return refuse(labels, pairs.status());
  Wanted wanted{static_cast<size_t>(request.top_n()), request.raw_scores(), {}};
  if (request.return_documents()) {
    wanted.documents.assign(request.documents().begin(), request.documents().end());
  }
  auto done = [&context, info, labels, documents, wanted = std::move(wanted),
               reply = std::move(reply)](GroupEnd end) mutable {
    const CallRecorder::Counts counts = CountsOf(end);
    absl::Status status = end.status;
    RerankResponse response;
    if (status.ok()) {
      response = Ranked(wanted, end.completed);
      response.set_model(labels.model);
      response.set_version(labels.version);
      status = CheckAnswerSize(context, response.ByteSizeLong());
    } else {
      status = OfElement(status, documents, end.failed);
    }
    status = context.recorder.Done(info, labels, status, counts);
    if (!status.ok()) return reply(status);
    reply(std::move(response));
  };
  return ItemGroup::Start(context, info, *model, *std::move(pairs), ItemGroup::OnFailure::kEnd,
                          std::move(done), ItemGroup::Admitted::kTogether);
}

Api::Pending Api::Rerank(const CallInfo& info, const RerankRequest& request,
                         Reply<RerankResponse> reply) {
  return RerankAs(info, request, "documents", std::move(reply));
}

}  // namespace longview::server
