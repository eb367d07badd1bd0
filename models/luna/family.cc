#include "models/luna/family.h"

#include <algorithm>
#include <optional>

#include "models/encoder/draft.h"
#include "models/luna/placement.h"

namespace longview::models {
namespace {

RowsRead RowsOfHead(const LunaConfig& config) {
  const bool projected = config.head == LunaHead::kProjectedMax ||
                         (config.is_lra() && config.pooling == LunaPooling::kProjectedMean);
  if (projected) return RowsRead::kNone;
  const bool mean = config.is_lra() && config.pooling == LunaPooling::kMean;
  return mean ? RowsRead::kAll : RowsRead::kFirst;
}

}  // namespace

EncoderFacts Luna::FactsOf(const LunaConfig& config) {
  EncoderFacts facts = FactsOfText("luna", config);
  facts.head = config.task;
  facts.max_tokens = config.max_tokens;
  if (config.task == EncoderHead::kPairClassification) facts.pairs = PairForm::kSeparate;
  if (config.head == LunaHead::kSentence || config.head == LunaHead::kProjectedMax ||
      config.head == LunaHead::kProjectedHead) {
    facts.pairs = PairForm::kJoined;
    facts.sep = config.eos;
  }
  facts.pad = config.pad;
  facts.pad_masks = facts.masked_take_no_position = true;
  facts.head_reads = RowsOfHead(config);
  if (config.strip_class) facts.cls_reads = std::nullopt;
  const bool by_class = config.is_lra() && config.pooling == LunaPooling::kCls;
  facts.default_pooling = by_class ? Pooling::kCls : Pooling::kMean;
  return facts;
}

// Heads that pool P leave the class token of the only or first document out. The second document
// of a pair, whose field ends in "_pair", keeps its own.
absl::Status Luna::StripClass(const std::string& field, EncoderSequence& sequence) const {
  if (!config_.strip_class || field.ends_with("_pair")) return absl::OkStatus();
  sequence.ids.erase(sequence.ids.begin());
  sequence.roles.erase(sequence.roles.begin());
  const bool left = std::any_of(sequence.roles.begin(), sequence.roles.end(),
                                [](uint8_t role) { return role != kernels::kMaskedToken; });
  if (left) return absl::OkStatus();
  return BadRequest(field, "nothing is left without the class token, which this model drops");
}

absl::Status Luna::Place(const std::string& field, EncoderSequence& sequence) const {
  if (sequence.roles[0] == kernels::kMaskedToken) {
    return BadRequest(field, "the first token is masked; padding must stand on the right");
  }
  if (absl::Status status = StripClass(field, sequence); !status.ok()) return status;
  PlaceLunaTokens(config_.pad, sequence);
  return absl::OkStatus();
}

}  // namespace longview::models
