// Luna's encoders as a family.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/encoder/draft.h"
#include "models/encoder/family.h"
#include "models/encoder/head_rows.h"
#include "models/encoder/heads_pass.h"
#include "models/encoder/model.h"
#include "models/encoder/pad_positions.h"
#include "models/luna/pass.h"
#include "models/status_macros.h"
#include "models/text/dictionary_tokenizer.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

// Luna's heads: Long Range Arena classification and matching, masked LM, and the three classes of
// sequence classification of the RoBERTa-style model. `projected` gives the active rows of P where
// the head reads them. May throw what LibTorch throws. A result's bits do not depend on the other
// items.
class Heads {
 public:
  Heads(const LunaConfig& config, const LunaWeights& weights, const kernels::ParallelFor& pool,
        std::span<const HeadInput> inputs, ExtraOf projected)
      : config_(config), weights_(weights), projected_(projected), pass_(inputs, pool) {}

  std::vector<HeadOutput> Compute() {
    if (config_.head == LunaHead::kMaskedLm) {
      pass_.PredictMasks({&*weights_.head_dense, config_.activation, weights_.head_norm.view(),
                          &*weights_.head_out},
                         config_.width);
    } else {
      pass_.Classify([&](const HeadInput& input) { return Features(input); },
                     [&](const Vector& features) { return Classified(features); });
    }
    pass_.Embed([&](const HeadInput& input) {
      return PoolRows(*input.item, input.rows[0], config_.width);
    });
    return pass_.Take();
  }

 private:
  using Vector = std::vector<float>;

  Vector FirstRow(const HeadInput& input, size_t d) const {
    return {input.rows[d], input.rows[d] + config_.width};
  }

  // Rows of P of document d, for its head.
  ExtraRowsView Projected(const HeadInput& input, size_t d) const {
    return projected_(input.first_sequence + static_cast<int>(d));
  }

  // The vector that stands for document d in the LRA heads.
  Vector Document(const HeadInput& input, size_t d) const {
    switch (config_.pooling) {
      case LunaPooling::kCls:
        return FirstRow(input, d);
      case LunaPooling::kMean:
        return MeanRows(input.rows[d], input.item->sequences[d].roles, config_.width);
      case LunaPooling::kProjectedMean: {
        const ExtraRowsView p = Projected(input, d);
        const std::vector<uint8_t> all(static_cast<size_t>(p.count), kernels::kLocalToken);
        return MeanRows(p.rows, all, config_.width);
      }
    }
    return {};
  }

  // Input of the head's first linear that all items share.
  Vector Features(const HeadInput& input) const {
    if (config_.head == LunaHead::kSentence) return FirstRow(input, 0);
    if (config_.head == LunaHead::kProjectedMax) return LargestProjected(input);
    if (config_.head == LunaHead::kProjectedHead) return AttendedProjected(input);
    if (config_.task != EncoderHead::kPairClassification) return Document(input, 0);
    // The published code puts the second document first.
    Vector features = Document(input, 1);
    const Vector first = Document(input, 0);
    features.insert(features.end(), first.begin(), first.end());
    return features;
  }

  HeadRows RowsOfProjected(const ExtraRowsView& p) const {
    HeadRows rows;
    for (int64_t r = 0; r < p.count; ++r) rows.push_back(p.rows + r * config_.width);
    return rows;
  }

  Vector LargestProjected(const HeadInput& input) const {
    const Vector rows =
        pass_.Apply(*weights_.head_in, RowsOfProjected(Projected(input, 0)), Activation::kNone);
    const auto width = static_cast<size_t>(config_.width);
    Vector largest(rows.begin(), rows.begin() + config_.width);
    for (size_t at = 0; at < rows.size(); ++at) {
      largest[at % width] = std::max(largest[at % width], rows[at]);
    }
    return largest;
  }

  // Multi-head attention of x_0 over the rows of P, then a LayerNorm.
  Vector AttendedProjected(const HeadInput& input) const {
    const HeadRows rows = RowsOfProjected(Projected(input, 0));
    const Vector query = pass_.Apply(*weights_.query, HeadRows{input.rows[0]}, Activation::kNone);
    const Vector keys = pass_.Apply(*weights_.key, rows, Activation::kNone);
    const Vector values = pass_.Apply(*weights_.value, rows, Activation::kNone);
    const VectorKernels& vectors = ChooseVectorKernels();
    const int64_t width = config_.width, dim = width / config_.heads;
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    Vector context(static_cast<size_t>(width));
    for (int64_t head = 0; head < config_.heads; ++head) {
      Vector scores;
      for (size_t r = 0; r < rows.size(); ++r) {
        const float* key = keys.data() + static_cast<int64_t>(r) * width + head * dim;
        scores.push_back(scale * vectors.dot(query.data() + head * dim, key, dim));
      }
      const Vector shares = Softmax(scores);
      for (size_t r = 0; r < rows.size(); ++r) {
        vectors.add_scaled(context.data() + head * dim,
                           values.data() + static_cast<int64_t>(r) * width + head * dim, shares[r],
                           dim);
      }
    }
    Vector attended = pass_.Apply(*weights_.attended, context, Activation::kNone);
    NormRows(weights_.head_norm.view(), width, attended);
    return attended;
  }

  Vector Classified(Vector values) const {
    for (const DenseLayer& layer : weights_.hidden) {
      values = pass_.Apply(layer, values, config_.hidden_activation);
    }
    if (weights_.head_dense) {
      values = pass_.Apply(*weights_.head_dense, values, config_.pooler_activation);
    }
    return pass_.Apply(*weights_.head_out, values, Activation::kNone);
  }

  const LunaConfig& config_;
  const LunaWeights& weights_;
  const ExtraOf projected_;
  HeadsPass pass_;
};

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
    return Heads(config_, weights_, pool, inputs, extra).Compute();
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
  RETURN_IF_ERROR(StripClass(field, sequence));
  PlaceLunaTokens(config_.pad, sequence);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLuna(const ModelDirectory& directory) {
  return MakeFamily<Luna>(ReadTextConfig<ParseLunaConfig>(directory), directory);
}

absl::StatusOr<std::optional<Tokenizer>> ReadLunaTokenizer(const ModelDirectory& directory) {
  ASSIGN_OR_RETURN(const LunaConfig config, ReadTextConfig<ParseLunaConfig>(directory));
  if (directory.tokenizer || directory.bytes) return std::optional<Tokenizer>();
  const DictionaryTemplate model = config.is_lra()
                                       ? DictionaryTemplate{"<CLS>", "<CLS>", config.added, false}
                                       : DictionaryTemplate{"<s>", "<mask>", config.added, true};
  absl::StatusOr<TokenizerSource> source = ReadDictionaryTokenizer(directory.path, model);
  if (absl::IsNotFound(source.status())) return std::optional<Tokenizer>();
  if (!source.ok()) return source.status();
  source->lower_case = directory.sentence.limits.lower_case;
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Create(*source));
  return std::optional<Tokenizer>(std::move(tokenizer));
}

}  // namespace longview::models
