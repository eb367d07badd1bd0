#include "models/roberta/weights.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/checkpoint/surplus.h"
#include "models/layers/kept_table.h"

namespace longview::models {
namespace {

constexpr std::array<std::string_view, 2> kPrefixes = {"roberta.", ""};

class Loader {
 public:
  Loader(const TransformerConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<Compute> compute, DeviceStore* store)
      : config_(config), load_(checkpoint, origin, compute), place_(load_, store) {}

  absl::StatusOr<TransformerWeights> Load() {
    for (const std::string norm : {"LayerNorm", "layer_norm"}) {
      load_.source().AcceptSpelling(norm + ".weight", norm + ".gamma");
      load_.source().AcceptSpelling(norm + ".bias", norm + ".beta");
    }
    const absl::StatusOr<std::string> prefix =
        load_.source().FindPrefix(kPrefixes, "embeddings.position_embeddings.weight");
    if (!prefix.ok()) return prefix.status();
    prefix_ = *prefix;
    load_.source().Ignore("*position_ids");
    load_.source().Ignore(prefix_ + "pooler.*");
    Embeddings();
    for (size_t i = 0; i < config_.layers.size() && load_.ok(); ++i) {
      Layer(absl::StrCat(prefix_, "encoder.layer.", i, "."));
    }
    Head();
    absl::Status status = LeaveSurplusAside(load_.Finish(), weights_.notes);
    if (!status.ok()) return status;
    weights_.parameters = load_.parameters();
    weights_.memory_bytes = load_.memory_bytes();
    return std::move(weights_);
  }

 private:
  NormWeight LayerNorm(const std::string& name) {
    return place_.Norm(load_.LayerNorm(name, config_.width, config_.norm_eps), config_.width);
  }

  void Embeddings() {
    const int64_t width = config_.width;
    const std::vector<int64_t> shape = {config_.vocab, width};
    const std::string words = prefix_ + "embeddings.word_embeddings.weight";
    if (config_.head == EncoderHead::kMaskedLm && config_.tied) {
      const std::array<std::string, 2> names = {words, "lm_head.decoder.weight"};
      words_ = load_.GetTied(names, shape);
    } else {
      words_ = load_.Get(words, shape);
    }
    KeepTable(words_, load_);
    weights_.words = place_.Stored(words_, config_.vocab, width);
    const auto table = [&](const char* name, int64_t rows) {
      const std::string stored = absl::StrCat(prefix_, "embeddings.", name, ".weight");
      return place_.Stored(load_.Table(stored, {rows, width}), rows, width);
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
        if (config_.has_pooler) weights_.pooler = Pooler();
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

  // lm_head.bias is the decoder's, unless the two are not tied: then it is in the file but unused.
  void MaskedLmHead() {
    const int64_t width = config_.width, vocab = config_.vocab;
    weights_.head_dense = load_.Dense("lm_head.dense", width, width);
    weights_.head_norm = load_.LayerNorm("lm_head.layer_norm", width, config_.norm_eps);
    const TensorView* decoder = words_;
    std::vector<float> bias;
    if (config_.tied) {
      const std::array<std::string, 2> names = {"lm_head.bias", "lm_head.decoder.bias"};
      bias = load_.Copy(load_.GetTied(names, {vocab}));
    } else {
      decoder = load_.Get("lm_head.decoder.weight", {vocab, width});
      const std::array<std::string, 2> names = {"lm_head.decoder.bias", "lm_head.bias"};
      bias = load_.Copy(load_.GetTied(names, {vocab}));
    }
    const std::vector<float> weight = load_.Copy(decoder);
    weights_.head_out = load_.Pack("lm_head.decoder", weight, std::move(bias), vocab, width);
  }

  const TransformerConfig& config_;
  WeightLoader load_;
  WeightPlacer place_;
  std::string prefix_;
  const TensorView* words_ = nullptr;
  TransformerWeights weights_;
};

}  // namespace

bool HasRobertaPooler(const TransformerConfig& config, const Checkpoint& checkpoint) {
  if (config.head == EncoderHead::kMultipleChoice) return true;
  if (config.head != EncoderHead::kNone) return false;
  for (const std::string_view prefix : kPrefixes) {
    if (checkpoint.Find(std::string(prefix) + "pooler.dense.weight") != nullptr) return true;
  }
  return false;
}

absl::StatusOr<TransformerWeights> LoadRobertaWeights(const TransformerConfig& config,
                                                      const Checkpoint& checkpoint,
                                                      const std::string& origin,
                                                      std::optional<Compute> compute,
                                                      DeviceStore* store) {
  return Loader(config, checkpoint, origin, compute, store).Load();
}

}  // namespace longview::models
