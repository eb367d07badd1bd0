#include "models/roberta/weights.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/weight_loader.h"
#include "models/ops/family_loader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

using Prefixes = std::array<std::string_view, 2>;

// Names of the parts in which the two kinds differ.
struct Names {
  Prefixes prefixes;
  // The masked LM's head.
  const char* transform;
  const char* norm;
  const char* decoder;
  const char* bias;
  // Texts are classified by the pooler and a linear, not by two linears of their own.
  bool pools;
};

constexpr Names kBert = {{"bert.", ""},
                         "cls.predictions.transform.dense",
                         "cls.predictions.transform.LayerNorm",
                         "cls.predictions.decoder",
                         "cls.predictions.bias",
                         true};
constexpr Names kRoberta = {{"roberta.", ""},  "lm_head.dense", "lm_head.layer_norm",
                            "lm_head.decoder", "lm_head.bias",  false};

class Loader : public FamilyLoader<TransformerConfig, TransformerWeights> {
 public:
  Loader(const Names& names, const TransformerConfig& config, const Checkpoint& checkpoint,
         const std::string& origin, std::optional<WeightFormat> format, DeviceStore* store)
      : FamilyLoader(config, checkpoint, origin, format, store), names_(names) {}

  absl::StatusOr<TransformerWeights> Load() {
    for (const std::string norm : {"LayerNorm", "layer_norm"}) {
      load_.source().AcceptSpelling(norm + ".weight", norm + ".gamma");
      load_.source().AcceptSpelling(norm + ".bias", norm + ".beta");
    }
    ASSIGN_OR_RETURN(
        const std::string prefix,
        load_.source().FindPrefix(names_.prefixes, "embeddings.position_embeddings.weight"));
    prefix_ = prefix;
    load_.source().Ignore("*position_ids");
    load_.source().Ignore(prefix_ + "pooler.*");
    Embeddings();
    for (size_t i = 0; i < config_.layers.size() && load_.ok(); ++i) {
      Layer(absl::StrCat(prefix_, "encoder.layer.", i, "."));
    }
    Head();
    return Finish();
  }

 private:
  void Embeddings() {
    const int64_t width = config_.width;
    const std::vector<int64_t> shape = {config_.vocab, width};
    const std::string words = prefix_ + "embeddings.word_embeddings.weight";
    if (config_.head == EncoderHead::kMaskedLm && config_.tied) {
      const std::array<std::string, 2> names = {words, absl::StrCat(names_.decoder, ".weight")};
      words_ = load_.GetTied(names, shape);
    } else {
      words_ = load_.Get(words, shape);
    }
    weights_.words = place_.Stored(words_, config_.vocab, width);
    const auto table = [&](const char* name, int64_t rows) {
      const std::string stored = absl::StrCat(prefix_, "embeddings.", name, ".weight");
      return place_.Stored(load_.Get(stored, {rows, width}), rows, width);
    };
    weights_.positions = table("position_embeddings", config_.positions);
    weights_.types = table("token_type_embeddings", config_.types);
    weights_.embedding_norm = LayerNorm(prefix_ + "embeddings.LayerNorm");
  }

  void Layer(const std::string& layer) {
    const int64_t width = config_.width;
    TransformerLayer& to = weights_.layers.emplace_back();
    to.project = place_.Stack(layer + "attention.self.",
                              {{"query", width}, {"key", width}, {"value", width}}, width);
    to.out = place_.Linear(layer + "attention.output.dense", width, width);
    to.middle_norm = LayerNorm(layer + "attention.output.LayerNorm");
    to.expand = place_.Linear(layer + "intermediate.dense", config_.intermediate, width);
    to.contract = place_.Linear(layer + "output.dense", width, config_.intermediate);
    to.output_norm = LayerNorm(layer + "output.LayerNorm");
  }

  std::optional<DenseLayer> Pooler() {
    return load_.Dense(prefix_ + "pooler.dense", config_.width, config_.width);
  }

  void Head() {
    const int64_t width = config_.width;
    const auto labels = static_cast<int64_t>(config_.labels.size());
    switch (config_.head) {
      case EncoderHead::kPairClassification:
        return;
      case EncoderHead::kNone:
        // Left in the file by a masked LM.
        load_.source().Ignore("lm_head.*");
        load_.source().Ignore("cls.*");
        if (config_.has_pooler) weights_.pooler = Pooler();
        return;
      case EncoderHead::kSequenceClassification:
        if (names_.pools) return PooledHead(labels);
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
        return PooledHead(1);
    }
  }

  void PooledHead(int64_t labels) {
    weights_.pooler = Pooler();
    weights_.head_out = load_.Dense("classifier", labels, config_.width);
  }

  void MaskedLmHead() {
    const int64_t width = config_.width, vocab = config_.vocab;
    const std::string decoder = names_.decoder, bias_name = decoder + ".bias";
    weights_.head_dense = load_.Dense(names_.transform, width, width);
    weights_.head_norm = load_.LayerNorm(names_.norm, width, config_.norm_eps);
    const TensorView* table =
        config_.tied ? words_ : load_.Get(decoder + ".weight", {vocab, width});
    std::vector<float> bias = DecoderBias(bias_name, names_.bias, config_.tied, vocab, load_);
    const std::vector<float> weight = load_.Copy(table);
    weights_.head_out = load_.Pack(decoder, weight, std::move(bias), vocab, width);
  }

  const Names& names_;
  std::string prefix_;
  const TensorView* words_ = nullptr;
};

bool HasPooler(const Names& names, const TransformerConfig& config, const Checkpoint& checkpoint) {
  if (config.head == EncoderHead::kMultipleChoice) return true;
  if (config.head == EncoderHead::kSequenceClassification) return names.pools;
  if (config.head != EncoderHead::kNone) return false;
  for (const std::string_view prefix : names.prefixes) {
    if (checkpoint.Find(std::string(prefix) + "pooler.dense.weight") != nullptr) return true;
  }
  return false;
}

}  // namespace

bool HasRobertaPooler(const TransformerConfig& config, const Checkpoint& checkpoint) {
  return HasPooler(kRoberta, config, checkpoint);
}

bool HasBertPooler(const TransformerConfig& config, const Checkpoint& checkpoint) {
  return HasPooler(kBert, config, checkpoint);
}

absl::StatusOr<TransformerWeights> LoadRobertaWeights(const TransformerConfig& config,
                                                      const Checkpoint& checkpoint,
                                                      const std::string& origin,
                                                      std::optional<WeightFormat> format,
                                                      DeviceStore* store) {
  return Loader(kRoberta, config, checkpoint, origin, format, store).Load();
}

absl::StatusOr<TransformerWeights> LoadBertWeights(const TransformerConfig& config,
                                                   const Checkpoint& checkpoint,
                                                   const std::string& origin,
                                                   std::optional<WeightFormat> format,
                                                   DeviceStore* store) {
  return Loader(kBert, config, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
