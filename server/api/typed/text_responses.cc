#include "server/api/typed/text_responses.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/calls/call_totals.h"

namespace longview::server {
namespace {

using google::protobuf::RepeatedField;

void Copy(std::span<const float> values, RepeatedField<float>* out) {
  out->Add(values.begin(), values.end());
}

absl::Status CopyTensor(const models::Answer& answer, std::string_view name,
                        RepeatedField<float>* out) {
  const models::HostTensor* tensor = answer.Find(name);
  if (tensor == nullptr) {
    return absl::InternalError(absl::StrCat("the model gave no ", std::string(name)));
  }
  Copy(tensor->floats(), out);
  return absl::OkStatus();
}

// Splits a [T, width] tensor into its rows. Empty if the model gave none.
std::vector<std::span<const float>> Rows(const models::Answer& answer, std::string_view name) {
  const models::HostTensor* tensor = answer.Find(name);
  if (tensor == nullptr || tensor->shape.empty()) return {};
  const auto width = static_cast<size_t>(tensor->shape.back());
  const std::span<const float> all = tensor->floats();
  std::vector<std::span<const float>> rows;
  for (size_t i = 0; width > 0 && i + width <= all.size(); i += width) {
    rows.push_back(all.subspan(i, width));
  }
  return rows;
}

}  // namespace

absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::ClassifyResponse& out) {
  size_t count = done.answer.labels.size();
  if (options.top_k > 0) count = std::min(count, static_cast<size_t>(options.top_k));
  for (size_t i = 0; i < count; ++i) {
    models::LabelScore& label = done.answer.labels[i];
    auto* added = out.add_labels();
    added->set_id(label.id);
    added->set_name(std::move(label.name));
    added->set_score(label.score);
  }
  FillShared(done, out);
  if (!options.return_logits) return absl::OkStatus();
  return CopyTensor(done.answer, "logits", out.mutable_logits());
}

absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::ClassifyTokensResponse& out) {
  for (models::EntitySpan& entity : done.answer.entities) {
    auto* added = out.add_entities();
    added->set_label(std::move(entity.label));
    added->set_score(entity.score);
    added->set_text(std::move(entity.text));
    added->set_start(entity.start);
    added->set_end(entity.end);
  }
  FillShared(done, out);
  if (!options.return_logits) return absl::OkStatus();
  const auto rows = Rows(done.answer, "logits");
  if (rows.empty()) return absl::InternalError("the model gave no logits");
  for (const auto row : rows) Copy(row, out.add_logits()->mutable_values());
  return absl::OkStatus();
}

absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::AnswerQuestionResponse& out) {
  for (models::AnswerSpan& answer : done.answer.answers) {
    auto* added = out.add_answers();
    added->set_text(std::move(answer.text));
    added->set_score(answer.score);
    added->set_probability(answer.probability);
    added->set_start(answer.start);
    added->set_end(answer.end);
  }
  FillShared(done, out);
  if (!options.return_logits) return absl::OkStatus();
  absl::Status status = CopyTensor(done.answer, "start_logits", out.mutable_start_logits());
  status.Update(CopyTensor(done.answer, "end_logits", out.mutable_end_logits()));
  return status;
}

absl::Status FillResponse(const AnswerOptions& options, Completed done,
                          longview::v1::FillMaskResponse& out) {
  const auto rows = options.return_logits ? Rows(done.answer, "mask_logits")
                                          : std::vector<std::span<const float>>{};
  if (options.return_logits && rows.size() != done.answer.masks.size()) {
    return absl::InternalError("the model gave no logits for a mask");
  }
  for (size_t m = 0; m < done.answer.masks.size(); ++m) {
    models::MaskFill& mask = done.answer.masks[m];
    auto* added = out.add_masks();
    added->set_position(mask.position);
    for (models::MaskFill::Candidate& candidate : mask.candidates) {
      auto* choice = added->add_candidates();
      choice->set_token_id(candidate.token_id);
      choice->set_token(std::move(candidate.token));
      choice->set_logprob(candidate.logprob);
    }
    if (options.return_logits) Copy(rows[m], added->mutable_logits());
  }
  FillShared(done, out);
  return absl::OkStatus();
}

absl::Status FillResponse(const AnswerOptions&, Completed done, longview::v1::EmbedResponse& out) {
  FillShared(done, out);
  return CopyTensor(done.answer, "embedding", out.mutable_embedding());
}

}  // namespace longview::server
