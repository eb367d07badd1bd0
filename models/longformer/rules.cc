#include "models/longformer/rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/span/band_planner.h"
#include "models/encoder/draft.h"
#include "models/encoder/pad_positions.h"

namespace longview::models {

EncoderFacts LongformerFacts(const LongformerConfig& config) {
  EncoderFacts facts = FactsOfText("longformer", config);
  facts.head = config.head;
  facts.types = config.types;
  facts.max_tokens = config.max_tokens();
  facts.pairs = PairForm::kJoined;
  facts.sep = config.sep;
  facts.pad = config.pad;
  facts.global_attention = true;
  return facts;
}

absl::Status PlaceTokens(const LongformerConfig& config, const std::string& field,
                         EncoderSequence& sequence) {
  return PlaceBehindPad(config.pad, config.positions, field, sequence);
}

// As the task's HuggingFace class: sequence classification marks the first token, question
// answering everything before the first separator, multiple choice everything after the second.
absl::Status MarkGlobals(const LongformerConfig& config, const std::string& field, Task task,
                         EncoderSequence& sequence) {
  const auto mark = [&](int begin, int end) {
    for (int t = begin; t < end; ++t) {
      if (sequence.roles[t] == kernels::kLocalToken) sequence.roles[t] = kernels::kGlobalToken;
    }
  };
  if (config.head == EncoderHead::kSequenceClassification) mark(0, 1);
  const bool question = task == Task::kQuestionAnswering;
  if (!question && task != Task::kMultipleChoice) return absl::OkStatus();
  const auto first_sep = std::find(sequence.ids.begin(), sequence.ids.end(), config.sep);
  if (first_sep == sequence.ids.end()) {
    return BadRequest(field, absl::StrCat("no separator (id ", config.sep, ") ends the ",
                                          question ? "question" : "first text",
                                          "; send one, or a global_attention_mask"));
  }
  const int sep = static_cast<int>(first_sep - sequence.ids.begin());
  question ? mark(0, sep) : mark(sep + 2, sequence.tokens());
  return absl::OkStatus();
}

}  // namespace longview::models
