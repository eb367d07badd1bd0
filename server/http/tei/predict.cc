// POST /predict.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http/body_error.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"
#include "server/http/tei/tei.h"
#include "server/http/tei/tei_body.h"

namespace longview::server {
namespace {

using longview::v1::ClassifyRequest;
using longview::v1::ClassifyResponse;
using nlohmann::json;
using ClassifyList = ListRequest<ClassifyRequest>;

struct PredictRequest {
  ClassifyList list;
  bool batch = false;  // A list of answers is wanted, also of one.
  bool raw_scores = false;
};

// One text, or a pair of them.
absl::Status AddTexts(json& texts, const std::string& field, const ClassifyRequest& like,
                      ClassifyList& out) {
  if (!texts.is_array() || texts.empty() || texts.size() > 2) {
    return FieldError(field, absl::StrCat("expected one string or two, got ", Describe(texts)));
  }
  ClassifyRequest item = like;
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StatusOr<std::string> text = TakeString(texts[i], absl::StrCat(field, "[", i, "]"));
    if (!text.ok()) return text.status();
    i == 0 ? item.set_text(*std::move(text)) : item.set_text_pair(*std::move(text));
  }
  out.items.push_back(std::move(item));
  return absl::OkStatus();
}

absl::Status ReadInputs(json& inputs, size_t most, const ClassifyRequest& like,
                        PredictRequest& out) {
  if (inputs.is_string()) {
    json one = json::array({std::move(inputs)});
    return AddTexts(one, kInputs, like, out.list);
  }
  if (!inputs.is_array() || inputs.empty()) {
    return FieldError(kInputs, absl::StrCat("expected a string, one or two strings, or a list of "
                                            "such lists, got ",
                                            Describe(inputs)));
  }
  out.batch = inputs.front().is_array();
  if (!out.batch) return AddTexts(inputs, kInputs, like, out.list);
  if (inputs.size() > most) {
    return FieldError(kInputs,
                      absl::StrCat("has ", inputs.size(), " elements, the limit is ", most));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string field = absl::StrCat(kInputs, "[", i, "]");
    if (absl::Status s = AddTexts(inputs[i], field, like, out.list); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<PredictRequest> ReadPredict(TeiBody& body, size_t most) {
  PredictRequest out;
  out.list.model = body.model();
  out.list.field = kInputs;
  ClassifyRequest like;
  const absl::StatusOr<std::optional<bool>> truncate = body.OptionalFlag("truncate");
  if (!truncate.ok()) return truncate.status();
  if (*truncate) like.set_truncate(**truncate);
  const absl::StatusOr<bool> raw = body.Flag("raw_scores", false);
  if (!raw.ok()) return raw.status();
  out.raw_scores = out.list.return_logits = *raw;
  like.set_return_logits(*raw);
  const absl::StatusOr<json*> inputs = body.Required(kInputs);
  if (!inputs.ok()) return inputs.status();
  if (absl::Status s = ReadInputs(**inputs, most, like, out); !s.ok()) return s;
  return out;
}

// The classes, best first: probabilities, or the logits, whose order is the same or nearly so.
void AppendClasses(const ClassifyResponse& classes, bool raw_scores, std::string* out) {
  std::vector<std::pair<float, const std::string*>> scores;
  for (const auto& label : classes.labels()) {
    scores.emplace_back(raw_scores ? classes.logits(label.id()) : label.score(), &label.name());
  }
  std::stable_sort(scores.begin(), scores.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
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

HttpResponse Predictions(const ListAnswer<ClassifyResponse>& answer, bool batch, bool raw_scores) {
  HttpResponse response;
  std::string& body = response.body;
  if (batch) body.push_back('[');
  for (size_t i = 0; i < answer.results.size(); ++i) {
    if (i > 0) body.push_back(',');
    AppendClasses(*answer.results[i], raw_scores, &body);
  }
  if (batch) body.push_back(']');
  AddServerTiming(answer.totals.queue_seconds, answer.totals.compute_seconds, &response);
  return response;
}

}  // namespace

void TeiPredict(HttpContext& context, const ExchangePtr& exchange, TeiBody body) {
  absl::StatusOr<PredictRequest> request =
      ReadPredict(body, static_cast<size_t>(context.api.options().max_items));
  if (!request.ok()) return Refuse(context, exchange, request.status());
  const Api::Pending pending = context.api.ClassifyList(
      exchange->info(), std::move(request->list),
      [&context, exchange, batch = request->batch,
       raw = request->raw_scores](absl::StatusOr<ListAnswer<ClassifyResponse>> answer) {
        if (!answer.ok()) return exchange->Fail(answer.status());
        constexpr size_t kLabelBytes = 64;
        const auto labels = static_cast<size_t>(answer->results.front()->labels_size());
        WriteSized(context, exchange, kLabelBytes * labels * answer->results.size(),
                   [&context, exchange, batch, raw, answer = *std::move(answer)] {
                     HttpResponse response = Predictions(answer, batch, raw);
                     const absl::Status status = CheckAnswerSize(context, response.body);
                     if (!status.ok()) return exchange->Fail(status);
                     exchange->Respond(std::move(response));
                   });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

}  // namespace longview::server
