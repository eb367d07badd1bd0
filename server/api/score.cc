#include "server/api/score.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/call_totals.h"
#include "server/api/item_group.h"
#include "server/api/rerank.h"
#include "server/errors.h"

namespace longview::server {
namespace {

// A first text stands in every pair that it is of.
absl::Status CheckPairs(const ApiContext& context, const ScoreRequest& request) {
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
  const size_t limit = context.options.max_message_bytes;
  if (firsts == 1 && request.first.front().size() > limit / pairs) {
    return BadField(
        request.field,
        absl::StrCat("has ", pairs, " elements, each with a copy of the first text of ",
                     request.first.front().size(), " bytes: more than ", limit, " in all"));
  }
  return absl::OkStatus();
}

std::vector<models::Request> ScoredPairs(const ScoreRequest& request) {
  std::vector<models::Request> pairs(request.second.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    models::Request& pair = pairs[i];
    pair.task = models::Task::kRerank;
    pair.text = request.first[request.first.size() == 1 ? 0 : i];
    pair.text_pair = request.second[i];
    pair.truncate = request.truncate;
    pair.truncate_tokens = request.truncate_prompt_tokens;
  }
  return pairs;
}

}  // namespace

std::shared_ptr<PendingCall> RunScore(ApiContext& context, const CallInfo& info,
                                      const ScoreRequest& request, Reply<ScoreAnswer> reply) {
  const auto refuse = [&](const ModelLabels& labels, const absl::Status& status) {
    const auto items = static_cast<int>(request.second.size());
    reply(context.recorder.Done(info, labels, status, {.items = items}));
    return std::make_shared<PendingCall>(context.engine);
  };
  const absl::StatusOr<ModelHandle> model =
      FindModelForTask(context, request.model, "", models::Task::kRerank);
  if (!model.ok()) return refuse(context.recorder.Labels(request.model), model.status());
  const ModelLabels labels{(*model)->name, (*model)->version};
  if (absl::Status status = CheckPairs(context, request); !status.ok()) {
    return refuse(labels, status);
  }
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
  return ItemGroup::Start(context, info, *model, ScoredPairs(request), ItemGroup::OnFailure::kEnd,
                          std::move(done), ItemGroup::Admitted::kTogether);
}

}  // namespace longview::server
