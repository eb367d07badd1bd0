// POST /predict.
#include "server/http/tei/tei.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "server/http/json/writer.h"
#include "server/http/tei/predict_request.h"

namespace longview::server {
namespace {

using longview::v1::ClassifyResponse;

// The scores by id.
std::vector<float> ScoresOf(const ClassifyResponse& classes, PredictScores kind) {
  std::vector<float> scores(classes.logits().begin(), classes.logits().end());
  if (kind == PredictScores::kProbabilities) {
    scores.resize(static_cast<size_t>(classes.labels_size()));
    for (const auto& label : classes.labels()) {
      scores[static_cast<size_t>(label.id())] = label.score();
    }
  } else if (kind == PredictScores::kSigmoid) {
    for (float& score : scores) score = 1 / (1 + std::exp(-score));
  } else if (kind == PredictScores::kSoftmax) {
    const float largest = *std::max_element(scores.begin(), scores.end());
    for (float& score : scores) score = std::exp(score - largest);
    const float sum = std::accumulate(scores.begin(), scores.end(), 0.0F);
    for (float& score : scores) score /= sum;
  }
  return scores;
}

// The classes, best first.
void AppendClasses(const ClassifyResponse& classes, const PredictForm& form, std::string* out) {
  const std::vector<float> by_id = ScoresOf(classes, form.scores);
  std::vector<std::pair<float, const std::string*>> scores;
  for (const auto& label : classes.labels()) {
    scores.emplace_back(by_id[static_cast<size_t>(label.id())], &label.name());
  }
  std::stable_sort(scores.begin(), scores.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto top = static_cast<size_t>(form.top_k);
  if (top > 0 && top < scores.size()) scores.resize(top);
  out->push_back('[');
  for (const auto& [score, name] : scores) {
    if (out->back() != '[') out->push_back(',');
    out->append(R"({"score":)");
    AppendJson(score, out);
    out->append(R"(,"label":)");
    AppendJsonString(*name, out);
    out->push_back('}');
  }
  out->push_back(']');
}

HttpResponse Predictions(const ListAnswer<ClassifyResponse>& answer, const PredictForm& form) {
  HttpResponse response;
  std::string& body = response.body;
  if (form.batch) body.push_back('[');
  for (size_t i = 0; i < answer.results.size(); ++i) {
    if (i > 0) body.push_back(',');
    AppendClasses(*answer.results[i], form, &body);
  }
  if (form.batch) body.push_back(']');
  AddServerTiming(answer.totals.queue_seconds, answer.totals.compute_seconds, &response);
  return response;
}

}  // namespace

void TeiPredict(HttpContext& context, const ExchangePtr& exchange, TeiBody body) {
  absl::StatusOr<PredictRequest> request =
      ReadPredict(std::move(body), static_cast<size_t>(context.api.options().max_items));
  if (!request.ok()) return Refuse(context, exchange, request.status());
  const Api::Pending pending = context.api.ClassifyList(
      exchange->info(), std::move(request->list),
      [&context, exchange,
       form = request->form](absl::StatusOr<ListAnswer<ClassifyResponse>> answer) {
        if (!answer.ok()) return exchange->Fail(answer.status());
        constexpr size_t kLabelBytes = 64;
        const auto labels = static_cast<size_t>(answer->results.front()->labels_size());
        WriteSized(context, exchange, kLabelBytes * labels * answer->results.size(),
                   [&context, exchange, form, answer = *std::move(answer)] {
                     HttpResponse response = Predictions(answer, form);
                     const absl::Status status = CheckAnswerSize(context, response.body);
                     if (!status.ok()) return exchange->Fail(status);
                     exchange->Respond(std::move(response));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace longview::server
