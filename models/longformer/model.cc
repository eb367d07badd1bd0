#include "models/longformer/model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/span/band_planner.h"
#include "models/encoder/draft.h"
#include "models/encoder/model.h"
#include "models/encoder/weighted_family.h"
#include "models/longformer/cost.h"
#include "models/longformer/encoder.h"
#include "models/longformer/heads.h"

namespace longview::models {
namespace {

EncoderFacts FactsOf(const LongformerConfig& config) {
  EncoderFacts facts;
  facts.family = "longformer";
  facts.architecture = config.architecture;
  facts.head = config.head;
  facts.vocab = config.vocab;
  facts.types = config.types;
  facts.width = config.width;
  facts.max_tokens = config.max_tokens();
  facts.labels = config.labels;
  facts.problem_type = config.problem_type;
  facts.pairs = PairForm::kJoined;
  facts.sep = config.sep;
  facts.pad = config.pad;
  facts.global_attention = true;
  return facts;
}

struct LongformerParts {
  using Config = LongformerConfig;
  using Weights = LongformerWeights;
  using Context = EncoderContext;
  using Batch = EncoderRun;
  static constexpr auto kParse = ParseLongformerConfig;
  static constexpr auto kLoad = LoadLongformerWeights;
  static EncoderFacts Facts(const Config& config) { return FactsOf(config); }
};

class Longformer final : public WeightedFamily<LongformerParts> {
 public:
  Longformer(LongformerConfig config, LongformerWeights weights, Compute compute)
      : WeightedFamily(std::move(config), std::move(weights), compute) {
    facts_.has_pooler = weights_.pooler.has_value();
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;
  absl::Status MarkDefaultGlobals(const std::string& field, Task task,
                                  EncoderSequence& sequence) const override;

  size_t WorkspaceBytes(Sequences sequences) const override;
  EncoderWork WorkOf(const EncoderSequence& sequence) const override {
    return models::WorkOf(config_, sequence);
  }
  int64_t LogitFloats(const EncoderItem& item) const override {
    return models::LogitFloats(config_, item);
  }
};

// HuggingFace create_position_ids_from_input_ids: counts tokens other than pad.
absl::Status Longformer::Place(const std::string& field, EncoderSequence& sequence) const {
  int32_t position = config_.pad;
  for (const int32_t id : sequence.ids) {
    if (id != config_.pad) ++position;
    sequence.positions.push_back(id == config_.pad ? config_.pad : position);
  }
  if (position < config_.positions) return absl::OkStatus();
  return BadRequest(field, absl::StrCat("token position ", position, " is beyond the table of ",
                                        config_.positions));
}

// As the task's HuggingFace class: sequence classification marks the first token, question
// answering everything before the first separator, multiple choice everything after the second.
absl::Status Longformer::MarkDefaultGlobals(const std::string& field, Task task,
                                            EncoderSequence& sequence) const {
  const auto mark = [&](int begin, int end) {
    for (int t = begin; t < end; ++t) {
      if (sequence.roles[t] == kernels::kLocalToken) sequence.roles[t] = kernels::kGlobalToken;
    }
  };
  if (config_.head == EncoderHead::kSequenceClassification) mark(0, 1);
  const bool question = task == Task::kQuestionAnswering;
  if (!question && task != Task::kMultipleChoice) return absl::OkStatus();
  const auto first_sep = std::find(sequence.ids.begin(), sequence.ids.end(), config_.sep);
  if (first_sep == sequence.ids.end()) {
    return BadRequest(field, absl::StrCat("no separator (id ", config_.sep, ") ends the ",
                                          question ? "question" : "first text",
                                          "; send one, or a global_attention_mask"));
  }
  const int sep = static_cast<int>(first_sep - sequence.ids.begin());
  question ? mark(0, sep) : mark(sep + 2, sequence.tokens());
  return absl::OkStatus();
}

size_t Longformer::WorkspaceBytes(Sequences sequences) const {
  // Two results of one panel are alive at a time: the expanded one and what follows it.
  const int64_t widest = std::max(3 * config_.width, config_.intermediate) + config_.width;
  return ScratchBytes(sequences) +
         static_cast<size_t>(kPanelRows * widest * ElementBytes(context_.compute));
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLongformer(const ModelDirectory& directory) {
  return DescribeFamily<Longformer>(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadLongformer(ModelDirectory directory,
                                                      const LoadOptions& options) {
  return LoadEncoder(std::move(directory), options, BuildFamily<Longformer>);
}

}  // namespace longview::models
