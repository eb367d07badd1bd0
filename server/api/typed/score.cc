#include "server/api/api.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/calls/call_totals.h"
#include "server/api/calls/copies.h"
#include "server/api/calls/item_group.h"
#include "server/errors.h"

namespace longview::server {
namespace {

absl::Status CheckPairs(const ScoreRequest& request) {
  const size_t pairs = request.second.size();
  if (pairs < 1 || pairs > size_t{kMaxRerankDocuments}) {
    return BadField(request.field,
                    absl::StrCat("has ", pairs, " elements, expected 1 to ", kMaxRerankDocuments));
  }
  const size_t firsts = request.first.size();
  if (firsts != pairs && firsts != 1) {
    return BadField(request.field, absl::StrCat("has ", pairs, " elements beside ", firsts,
                                                " of the first texts, which must be 1 or as many"));
  }
  return absl::OkStatus();
}

// A lone first text stands in every pair.
absl::StatusOr<std::vector<models::Request>> ScoredPairs(const ApiContext& context,
                                                         const ScoreRequest& request) {
  const bool lone = request.first.size() == 1;
  Like<models::Request> like;
  like->task = models::Task::kRerank;
  if (lone) {
    like->text = request.first.front();
    like->shared_text = std::make_shared<const models::SharedText>();
  }
  like->truncate = request.truncate;
  like->truncate_tokens = request.truncate_prompt_tokens;
  auto pairs = like.Copies(request.second.size(),
                           {context.options.max_message_bytes, request.field, request.first_field});
  if (!pairs.ok()) return pairs;
  for (size_t i = 0; i < pairs->size(); ++i) {
    if (!lone) (*pairs)[i].text = request.first[i];
    (*pairs)[i].text_pair = request.second[i];
  }
  return pairs;
}

}  // namespace

Api::Pending Api::Score(const CallInfo& info, const ScoreRequest& request,
                        Reply<ScoreAnswer> reply) {
  ApiContext& context = context_;
  const auto refuse = [&](const ModelLabels& labels, const absl::Status& status) {
    const auto items = static_cast<int>(request.second.size());
    reply(context.recorder.Done(info, labels, status, {.items = items}));
    return std::make_shared<PendingCall>(context.engine);
  };
  const absl::StatusOr<ModelHandle> model =
      FindModelForTask(context, request.model, "", models::Task::kRerank);
  if (!model.ok()) return refuse(context.recorder.Labels(request.model), model.status());
  const ModelLabels labels{(*model)->name, (*model)->version};
  if (absl::Status status = CheckPairs(request); !status.ok()) {
    return refuse(labels, status);
  }
  absl::StatusOr<std::vector<models::Request>> pairs = ScoredPairs(context, request);
  if (!pairs.ok()) return refuse(labels, pairs.status());
  auto done = [&context, info, labels, field = request.field, raw = request.raw_scores,
               reply = std::move(reply)](const GroupEnd& end) mutable {
    const absl::Status status =
        end.status.ok() ? end.status : OfElement(end.status, field, end.failed);
    const absl::Status shown = context.recorder.Done(info, labels, status, CountsOf(end));
    if (!shown.ok()) return reply(shown);
    ScoreAnswer answer{labels, {}, TotalsOf(end.completed)};
    for (const Completed& pair : end.completed) {
      const models::PairScore& score = pair.answer.pair_score;
      answer.scores.push_back(raw ? score.raw : score.score);
    }
    reply(std::move(answer));
  };
  return ItemGroup::Start(context, info, *model, *std::move(pairs), ItemGroup::OnFailure::kEnd,
                          std::move(done), ItemGroup::Admitted::kTogether);
}

}  // namespace longview::server
