#include "server/http/tei/predict_request.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/api/calls/copies.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"

namespace longview::server {
namespace {

using longview::v1::ClassifyRequest;
using nlohmann::json;

// A body whose texts are not read yet: they go into copies of `like`.
struct PredictBody {
  Like<ClassifyRequest> like;
  json inputs;
  PredictForm form;
  bool raw_scores = false;
};

absl::Status ReadFunction(json& value, const std::string& name, PredictBody& out) {
  ASSIGN_OR_RETURN(const std::string function, ReadString(value, name));
  if (function == "softmax") {
    out.form.scores = PredictScores::kSoftmax;
  } else if (function == "sigmoid") {
    out.form.scores = PredictScores::kSigmoid;
  } else if (function == "none") {
    out.form.scores = PredictScores::kLogits;
  } else {
    return FieldError(name,
                      absl::StrCat("is ", Quoted(function), ", expected softmax, sigmoid or none"));
  }
  return absl::OkStatus();
}

const MemberTable<PredictBody>& PredictTable() {
  using enum MemberOf;
  using Body = PredictBody;
  static const auto* const table = new MemberTable<PredictBody>{
      {"model", kLongview, ReadBefore<Body>()},
      {kInputs, kTei, Keeps(&Body::inputs)},
      {"raw_scores", kTei, Reads(+[](Body& b, bool f) { b.raw_scores = f; })},
      {"truncate", kTei, Reads(+[](Body& b, bool f) { b.like->set_truncate(f); })},
      {"truncation_direction", kTei, ReadsDirection(+[](Body& b, std::string d) {
         b.like->set_truncation_direction(std::move(d));
       })},
      {"parameters", kHuggingFace, ReadBefore<Body>()},
      {"function_to_apply", kHuggingFace, ReadFunction},
      {"top_k", kHuggingFace, ReadsCount(+[](Body& b, int32_t n) { b.form.top_k = n; })},
      {"candidate_labels", kHuggingFace, kNoZeroShot},
      {"hypothesis_template", kHuggingFace, kNoZeroShot},
      {"multi_label", kHuggingFace, kNoZeroShot},
      {"aggregation_strategy", kHuggingFace, kElsewhere},
      {"aggregation", kLongview, kElsewhere},
      {"return_logits", kLongview, kElsewhere},
      {"text_pair", kLongview, kElsewhere},
      {"truncate_prompt_tokens", kVllm, kElsewhere},
  };
  return *table;
}

// One text, or a pair of them.
absl::Status ReadPredictTexts(json& texts, const std::string& field, ClassifyRequest& out) {
  if (!texts.is_array() || texts.empty() || texts.size() > 2) {
    return FieldError(field, absl::StrCat("expected one string or two, got ", Describe(texts)));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSIGN_OR_RETURN(std::string text, TakeString(texts[i], absl::StrCat(field, "[", i, "]")));
    i == 0 ? out.set_text(std::move(text)) : out.set_text_pair(std::move(text));
  }
  return absl::OkStatus();
}

absl::Status ReadInputs(json& inputs, size_t most, const Like<ClassifyRequest>& like,
                        PredictRequest& out) {
  if (inputs.is_string()) inputs = json::array({std::move(inputs)});
  if (!inputs.is_array() || inputs.empty()) {
    return FieldError(kInputs, absl::StrCat("expected a string, one or two strings, or a list of "
                                            "such lists, got ",
                                            Describe(inputs)));
  }
  out.form.batch = inputs.front().is_array();
  if (out.form.batch && inputs.size() > most) {
    return FieldError(kInputs,
                      absl::StrCat("has ", inputs.size(), " elements, the limit is ", most));
  }
  ASSIGN_OR_RETURN(std::vector<ClassifyRequest> items,
                   like.Copies(out.form.batch ? inputs.size() : 1));
  for (size_t i = 0; i < items.size(); ++i) {
    RETURN_IF_ERROR(out.form.batch
                        ? ReadPredictTexts(inputs[i], absl::StrCat(kInputs, "[", i, "]"), items[i])
                        : ReadPredictTexts(inputs, kInputs, items[i]));
    out.list.items.push_back(std::move(items[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PredictRequest> ReadPredict(TeiBody body, size_t most) {
  PredictBody read;
  RETURN_IF_ERROR(ReadTei(PredictTable(), body.object, read));
  if (read.inputs.is_null()) return FieldError(kInputs, "is missing");
  PredictRequest out;
  out.form = read.form;
  if (read.raw_scores) out.form.scores = PredictScores::kLogits;
  const bool logits = out.form.scores != PredictScores::kProbabilities;
  out.list.model = std::move(body.model);
  out.list.field = kInputs;
  out.list.return_logits = logits;
  read.like->set_return_logits(logits);
  RETURN_IF_ERROR(ReadInputs(read.inputs, most, read.like, out));
  return out;
}

std::vector<MemberInfo> PredictMembers() { return PredictTable().infos(); }

}  // namespace longview::server
