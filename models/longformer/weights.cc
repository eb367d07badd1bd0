#include "models/longformer/weights.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/weight_loader.h"
#include "models/ops/family_loader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

// The layout of a checkpoint, as HuggingFace's LongformerModel and its task classes store it.
class Loader : public FamilyLoader<LongformerConfig, LongformerWeights> {
 public:
  using FamilyLoader::FamilyLoader;

  absl::StatusOr<LongformerWeights> Load();

 private:
  void Embeddings();
  void Layer(int index);
  void Head();
  void MaskedLmHead();
  std::optional<DenseLayer> Pooler();

  const TensorView* words_ = nullptr;
  std::string prefix_;
};

void Loader::Embeddings() {
  const int64_t width = config_.width;
  const std::string words = prefix_ + "embeddings.word_embeddings.weight";
  if (config_.head == EncoderHead::kMaskedLm && config_.tied) {
    const std::array<std::string, 2> names = {words, "lm_head.decoder.weight"};
    words_ = load_.GetTied(names, {config_.vocab, width});
  } else {
    words_ = load_.Get(words, {config_.vocab, width});
  }
  weights_.words = place_.Stored(words_, config_.vocab, width);
  weights_.positions = place_.Stored(
      load_.Get(prefix_ + "embeddings.position_embeddings.weight", {config_.positions, width}),
      config_.positions, width);
  weights_.types =
      place_.Values(load_.Copy(load_.Get(prefix_ + "embeddings.token_type_embeddings.weight",
                                         {config_.types, width})),
                    config_.types, width);
  weights_.embedding_norm = LayerNorm(prefix_ + "embeddings.LayerNorm");
}

void Loader::Layer(int index) {
  const std::string layer = absl::StrCat(prefix_, "encoder.layer.", index, ".");
  const std::string self = layer + "attention.self.";
  const int64_t width = config_.width;
  LongformerLayer& to = weights_.layers.emplace_back();
  to.qkv = place_.Stack(self, {{"query", width}, {"key", width}, {"value", width}}, width);
  to.out = place_.Linear(layer + "attention.output.dense", width, width);
  to.attention_norm = LayerNorm(layer + "attention.output.LayerNorm");
  to.expand = place_.Linear(layer + "intermediate.dense", config_.intermediate, width);
  to.contract = place_.Linear(layer + "output.dense", width, config_.intermediate);
  to.output_norm = LayerNorm(layer + "output.LayerNorm");
  to.query_global = place_.Linear(self + "query_global", width, width);
  to.key_value_global = place_.Stack(self, {{"key_global", width}, {"value_global", width}}, width);
  // The stack has asked for both, names and shapes.
  to.key_global = place_.StoredMatrix(checkpoint_.Find(self + "key_global.weight"), width, width);
  to.value_global =
      place_.StoredMatrix(checkpoint_.Find(self + "value_global.weight"), width, width);
}

// The decoder's weight is that of the word embeddings unless the configuration says otherwise.
void Loader::MaskedLmHead() {
  const int64_t width = config_.width, vocab = config_.vocab;
  weights_.head_dense = load_.Dense("lm_head.dense", width, width);
  weights_.head_norm = load_.LayerNorm("lm_head.layer_norm", width, config_.norm_eps);
  const TensorView* decoder =
      config_.tied ? words_ : load_.Get("lm_head.decoder.weight", {vocab, width});
  std::vector<float> bias =
      DecoderBias("lm_head.decoder.bias", "lm_head.bias", config_.tied, vocab, load_);
  const std::vector<float> weight = load_.Copy(decoder);
  weights_.head_out = load_.Pack("lm_head.decoder", weight, std::move(bias), vocab, width);
}

std::optional<DenseLayer> Loader::Pooler() {
  return load_.Dense(prefix_ + "pooler.dense", config_.width, config_.width);
}

void Loader::Head() {
  const int64_t width = config_.width;
  const auto labels = static_cast<int64_t>(config_.labels.size());
  switch (config_.head) {
    case EncoderHead::kPairClassification:
      return;
    case EncoderHead::kNone:
      if (load_.source().Has(prefix_ + "pooler.dense.weight")) weights_.pooler = Pooler();
      return;
    case EncoderHead::kSequenceClassification:
      weights_.head_dense = load_.Dense("classifier.dense", width, width);
      weights_.head_out = load_.Dense("classifier.out_proj", labels, width);
      return;
    case EncoderHead::kTokenClassification:
      weights_.head_out = load_.Dense("classifier", labels, width);
      return;
    case EncoderHead::kQuestionAnswering:
      weights_.head_out = load_.Dense("qa_outputs", 2, width);
      return;
    case EncoderHead::kMaskedLm:
      return MaskedLmHead();
    case EncoderHead::kMultipleChoice:
      weights_.pooler = Pooler();
      weights_.head_out = load_.Dense("classifier", 1, width);
      return;
  }
}

absl::StatusOr<LongformerWeights> Loader::Load() {
  for (const std::string norm : {"LayerNorm", "layer_norm"}) {
    load_.source().AcceptSpelling(norm + ".weight", norm + ".gamma");
    load_.source().AcceptSpelling(norm + ".bias", norm + ".beta");
  }
  constexpr std::array<std::string_view, 3> kPrefixes = {"longformer.", "roberta.", ""};
  ASSIGN_OR_RETURN(std::string prefix,
                   load_.source().FindPrefix(kPrefixes, "embeddings.position_embeddings.weight"));
  prefix_ = prefix;
  load_.source().Ignore("*position_ids");
  load_.source().Ignore(prefix_ + "pooler.*");
  Embeddings();
  for (int i = 0; i < config_.layers && load_.ok(); ++i) Layer(i);
  if (load_.ok()) Head();
  return Finish();
}

}  // namespace

absl::StatusOr<LongformerWeights> LoadLongformerWeights(const LongformerConfig& config,
                                                        const Checkpoint& checkpoint,
                                                        const std::string& origin,
                                                        std::optional<WeightFormat> format,
                                                        DeviceStore* store) {
  return Loader(config, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
