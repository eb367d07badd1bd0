// Longformer as a family of encoders.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/span/band_planner.h"
#include "models/encoder/draft.h"
#include "models/encoder/family.h"
#include "models/encoder/model.h"
#include "models/encoder/pad_positions.h"
#include "models/longformer/pass.h"
#include "models/transformer/heads.h"

namespace longview::models {
namespace {

EncoderFacts FactsOf(const LongformerConfig& config) {
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

class Longformer final : public WeighedFamily<LongformerConfig, LongformerWeights> {
 public:
  Longformer(const LongformerConfig& config, const ModelDirectory& directory)
      : WeighedFamily(FactsOf(config), config, LoadLongformerWeights, directory) {}

  absl::Status Load(std::optional<WeightFormat> format, DeviceStore* store) override {
    absl::Status status = WeighedFamily::Load(format, store);
    facts_.has_pooler = weights_.pooler.has_value();
    return status;
  }
  std::vector<std::string> notes() const override { return weights_.notes; }

  std::unique_ptr<EncoderPass> MakePass(Compute compute, Sequences sequences,
                                        int tile_rows) const override {
    return std::make_unique<LongformerPass>(config_, weights_, compute, sequences, tile_rows);
  }
  DeviceRunBytes LongestBytes(int tokens, BytesOfSequences bytes) const override {
    return LongestLongformerBytes(config_, tokens, bytes);
  }
  std::vector<HeadOutput> ComputeHeads(const kernels::ParallelFor& pool,
                                       std::span<const HeadInput> inputs, ExtraOf) const override {
    TaskHeads heads = HeadsOf(config_, weights_);
    // HuggingFace: LongformerLMHead has the exact gelu whatever hidden_act says, and a norm;
    // LongformerClassificationHead has neither.
    const bool predicts = heads.head == EncoderHead::kMaskedLm;
    heads.activation = predicts ? Activation::kGelu : Activation::kTanh;
    heads.norm = predicts ? &weights_.head_norm : nullptr;
    return ComputeTaskHeads(heads, pool, inputs);
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override {
    return PlaceBehindPad(config_.pad, config_.positions, field, sequence);
  }
  absl::Status MarkDefaultGlobals(const std::string& field, Task task,
                                  EncoderSequence& sequence) const override;
};

// Marks the tokens that the task's HuggingFace class does: sequence classification marks the first,
// question answering all before the first separator, multiple choice all after the second.
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

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLongformer(const ModelDirectory& directory) {
  return MakeFamily<Longformer>(ReadTextConfig<ParseLongformerConfig>(directory), directory);
}

}  // namespace longview::models
