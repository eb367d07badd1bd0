// Luna's encoders as a family.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/encoder/draft.h"
#include "models/encoder/families.h"
#include "models/encoder/model.h"
#include "models/luna/heads.h"
#include "models/luna/pass.h"
#include "models/luna/placement.h"
#include "models/text/dictionary_tokenizer.h"

namespace longview::models {
namespace {

RowsRead RowsOfHead(const LunaConfig& config) {
  const bool projected = config.head == LunaHead::kProjectedMax ||
                         (config.is_lra() && config.pooling == LunaPooling::kProjectedMean);
  if (projected) return RowsRead::kNone;
  const bool mean = config.is_lra() && config.pooling == LunaPooling::kMean;
  return mean ? RowsRead::kAll : RowsRead::kFirst;
}

EncoderFacts FactsOf(const LunaConfig& config) {
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

class Luna final : public WeighedFamily<LunaConfig, LunaWeights> {
 public:
  Luna(const LunaConfig& config, const ModelDirectory& directory)
      : WeighedFamily(FactsOf(config), config, LoadLunaWeights, directory) {}

  std::unique_ptr<EncoderPass> MakePass(Compute compute, Sequences sequences,
                                        int tile_rows) const override {
    return std::make_unique<LunaPass>(config_, weights_, compute, sequences, tile_rows);
  }
  int64_t ExtraRows(const EncoderSequence& sequence) const override {
    return ReadsProjected(config_) ? ActiveRows(config_, sequence) : 0;
  }
  std::vector<HeadOutput> ComputeHeads(const kernels::ParallelFor& pool,
                                       std::span<const HeadInput> inputs,
                                       ExtraOf extra) const override {
    return ComputeLunaHeads(config_, weights_, pool, inputs, extra);
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;

 private:
  absl::Status StripClass(const std::string& field, EncoderSequence& sequence) const;
};

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

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLuna(const ModelDirectory& directory) {
  return MakeFamily<Luna>(ReadTextConfig<ParseLunaConfig>(directory), directory);
}

absl::StatusOr<std::optional<Tokenizer>> ReadLunaTokenizer(const ModelDirectory& directory) {
  const absl::StatusOr<LunaConfig> config = ReadTextConfig<ParseLunaConfig>(directory);
  if (!config.ok()) return config.status();
  if (directory.tokenizer || directory.bytes) return std::optional<Tokenizer>();
  const DictionaryTemplate model = config->is_lra()
                                       ? DictionaryTemplate{"<CLS>", "<CLS>", config->added, false}
                                       : DictionaryTemplate{"<s>", "<mask>", config->added, true};
  absl::StatusOr<TokenizerSource> source = ReadDictionaryTokenizer(directory.path, model);
  if (absl::IsNotFound(source.status())) return std::optional<Tokenizer>();
  if (!source.ok()) return source.status();
  source->lower_case = directory.sentence.limits.lower_case;
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Create(*source);
  if (!tokenizer.ok()) return tokenizer.status();
  return std::optional<Tokenizer>(*std::move(tokenizer));
}

}  // namespace longview::models
