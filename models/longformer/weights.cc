#include "models/longformer/weights.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/checkpoint/convert.h"

namespace longview::models {
namespace {

// Reads tensors with one sticky error, so that a model's layout reads as straight code.
class Loader {
 public:
  Loader(const LongformerConfig& config, const Checkpoint& checkpoint, const std::string& origin,
         std::optional<Compute> compute)
      : config_(config), checkpoint_(checkpoint), source_(checkpoint, origin), compute_(compute) {}

  absl::StatusOr<LongformerWeights> Load();

 private:
  const TensorView* Get(const std::string& name, const std::vector<int64_t>& shape) {
    return Keep(source_.Get(name, shape));
  }

  const TensorView* Keep(absl::StatusOr<const TensorView*> found) {
    if (!found.ok()) {
      if (status_.ok()) status_ = found.status();
      return nullptr;
    }
    if (*found != nullptr) weights_.parameters += static_cast<double>((*found)->elements());
    return *found;
  }

  // A copy of a tensor; its pages are given back. Empty after an error.
  std::vector<float> Copy(const TensorView* tensor) {
    if (tensor == nullptr || !compute_) return {};
    std::vector<float> values = ToFloat32(*tensor);
    checkpoint_.Release(*tensor);
    return values;
  }

  std::vector<float> Vector(const std::string& name, int64_t size) {
    std::vector<float> values = Copy(Get(name, {size}));
    weights_.memory_bytes += 4.0 * static_cast<double>(values.size());
    return values;
  }

  Norm LayerNorm(const std::string& name) {
    return {Vector(name + ".weight", config_.width), Vector(name + ".bias", config_.width),
            config_.norm_eps};
  }

  // Several stored layers of equal input, stacked into one.
  std::optional<DenseLayer> Stack(const std::string& prefix, std::vector<std::string> names,
                                  int64_t out, int64_t in);
  std::optional<DenseLayer> Pack(const std::string& name, std::span<const float> weight,
                                 std::vector<float> bias, int64_t out, int64_t in);
  std::optional<DenseLayer> Dense(const std::string& name, int64_t out, int64_t in) {
    return Stack("", {name}, out, in);
  }

  void Embeddings();
  void Layer(int index);
  void Head();
  void MaskedLmHead();
  std::optional<DenseLayer> Pooler();
  void NarrowSizes(const DenseLayer& layer);

  const LongformerConfig& config_;
  const Checkpoint& checkpoint_;
  WeightSource source_;
  const std::optional<Compute> compute_;  // Unset: only check.
  PanelRules rules_;
  std::string prefix_;
  absl::Status status_;
  LongformerWeights weights_;
};

std::optional<DenseLayer> Loader::Pack(const std::string& name, std::span<const float> weight,
                                       std::vector<float> bias, int64_t out, int64_t in) {
  if (!status_.ok() || !compute_) return std::nullopt;
  absl::StatusOr<Linear> linear = Linear::Pack(name, weight, out, in, *compute_, rules_);
  if (!linear.ok()) {
    status_ = linear.status();
    return std::nullopt;
  }
  weights_.memory_bytes += static_cast<double>(linear->bytes());
  return DenseLayer{*std::move(linear), std::move(bias)};
}

std::optional<DenseLayer> Loader::Stack(const std::string& prefix, std::vector<std::string> names,
                                        int64_t out, int64_t in) {
  std::vector<float> weight(compute_ ? names.size() * static_cast<size_t>(out * in) : 0);
  std::vector<float> bias;
  std::span<float> free = weight;
  for (const std::string& name : names) {
    const TensorView* part = Get(prefix + name + ".weight", {out, in});
    const std::vector<float> part_bias = Vector(prefix + name + ".bias", out);
    bias.insert(bias.end(), part_bias.begin(), part_bias.end());
    if (part == nullptr || !compute_) continue;
    CopyFloat32(*part, 0, free.first(static_cast<size_t>(out * in)));
    checkpoint_.Release(*part);
    free = free.subspan(static_cast<size_t>(out * in));
  }
  return Pack(prefix + names[0], weight, std::move(bias), out * static_cast<int64_t>(names.size()),
              in);
}

void Loader::Embeddings() {
  const int64_t width = config_.width;
  const std::string words = prefix_ + "embeddings.word_embeddings.weight";
  if (config_.head == LongformerHead::kMaskedLm && config_.tied) {
    const std::array<std::string, 2> names = {words, "lm_head.decoder.weight"};
    weights_.words = Keep(source_.GetTied(names, {config_.vocab, width}));
  } else {
    weights_.words = Get(words, {config_.vocab, width});
  }
  weights_.positions =
      Get(prefix_ + "embeddings.position_embeddings.weight", {config_.positions, width});
  weights_.types =
      Copy(Get(prefix_ + "embeddings.token_type_embeddings.weight", {config_.types, width}));
  weights_.embedding_norm = LayerNorm(prefix_ + "embeddings.LayerNorm");
  for (const TensorView* table : {weights_.words, weights_.positions}) {
    if (table != nullptr) weights_.memory_bytes += static_cast<double>(table->bytes);
  }
}

void Loader::NarrowSizes(const DenseLayer& layer) {
  const PanelSizes sizes = layer.linear.sizes();
  weights_.sizes.small = weights_.sizes.small && sizes.small;
  weights_.sizes.medium = weights_.sizes.medium && sizes.medium;
}

void Loader::Layer(int index) {
  const std::string layer = absl::StrCat(prefix_, "encoder.layer.", index, ".");
  const std::string self = layer + "attention.self.";
  const int64_t width = config_.width;
  auto qkv = Stack(self, {"query", "key", "value"}, width, width);
  auto out = Dense(layer + "attention.output.dense", width, width);
  Norm attention_norm = LayerNorm(layer + "attention.output.LayerNorm");
  auto expand = Dense(layer + "intermediate.dense", config_.intermediate, width);
  auto contract = Dense(layer + "output.dense", width, config_.intermediate);
  Norm output_norm = LayerNorm(layer + "output.LayerNorm");
  auto query_global = Dense(self + "query_global", width, width);
  auto key_value_global = Stack(self, {"key_global", "value_global"}, width, width);
  if (!status_.ok() || !compute_) return;
  for (const auto* dense : {&qkv, &out, &expand, &contract}) NarrowSizes(**dense);
  FloatMatrix key_global(*checkpoint_.Find(self + "key_global.weight"));
  FloatMatrix value_global(*checkpoint_.Find(self + "value_global.weight"));
  weights_.memory_bytes += 2 * 4.0 * static_cast<double>(width * width);
  weights_.layers.push_back({*std::move(qkv), *std::move(out), std::move(attention_norm),
                             *std::move(expand), *std::move(contract), std::move(output_norm),
                             *std::move(query_global), *std::move(key_value_global),
                             std::move(key_global), std::move(value_global)});
}

// The decoder's weight and bias are tied to the word embeddings and lm_head.bias unless the
// configuration says otherwise; then lm_head.bias is in the file but unused.
void Loader::MaskedLmHead() {
  const int64_t width = config_.width, vocab = config_.vocab;
  weights_.head_dense = Dense("lm_head.dense", width, width);
  weights_.head_norm = LayerNorm("lm_head.layer_norm");
  const TensorView* decoder = weights_.words;
  std::vector<float> bias;
  if (config_.tied) {
    const std::array<std::string, 2> names = {"lm_head.bias", "lm_head.decoder.bias"};
    bias = Copy(Keep(source_.GetTied(names, {vocab})));
  } else {
    decoder = Get("lm_head.decoder.weight", {vocab, width});
    bias = Copy(Get("lm_head.decoder.bias", {vocab}));
    source_.Ignore("lm_head.bias");
  }
  const std::vector<float> weight = Copy(decoder);
  weights_.head_out = Pack("lm_head.decoder", weight, std::move(bias), vocab, width);
}

std::optional<DenseLayer> Loader::Pooler() {
  return Dense(prefix_ + "pooler.dense", config_.width, config_.width);
}

void Loader::Head() {
  const int64_t width = config_.width;
  const auto labels = static_cast<int64_t>(config_.labels.size());
  switch (config_.head) {
    case LongformerHead::kNone:
      if (source_.Has(prefix_ + "pooler.dense.weight")) weights_.pooler = Pooler();
      return;
    case LongformerHead::kSequenceClassification:
      weights_.head_dense = Dense("classifier.dense", width, width);
      weights_.head_out = Dense("classifier.out_proj", labels, width);
      return;
    case LongformerHead::kTokenClassification:
      weights_.head_out = Dense("classifier", labels, width);
      return;
    case LongformerHead::kQuestionAnswering:
      weights_.head_out = Dense("qa_outputs", 2, width);
      return;
    case LongformerHead::kMaskedLm:
      return MaskedLmHead();
    case LongformerHead::kMultipleChoice:
      weights_.pooler = Pooler();
      weights_.head_out = Dense("classifier", 1, width);
      return;
  }
}

absl::StatusOr<LongformerWeights> Loader::Load() {
  for (const std::string norm : {"LayerNorm", "layer_norm"}) {
    source_.AcceptSpelling(norm + ".weight", norm + ".gamma");
    source_.AcceptSpelling(norm + ".bias", norm + ".beta");
  }
  constexpr std::array<std::string_view, 3> kPrefixes = {"longformer.", "roberta.", ""};
  absl::StatusOr<std::string> prefix =
      source_.FindPrefix(kPrefixes, "embeddings.position_embeddings.weight");
  if (!prefix.ok()) return prefix.status();
  prefix_ = *prefix;
  source_.Ignore("*position_ids");
  source_.Ignore(prefix_ + "pooler.*");
  weights_.sizes = {true, true, true};
  Embeddings();
  for (int i = 0; i < config_.layers && status_.ok(); ++i) Layer(i);
  if (status_.ok()) Head();
  if (!status_.ok()) return status_;
  if (absl::Status unused = source_.Finish(); !unused.ok()) return unused;
  return std::move(weights_);
}

}  // namespace

FloatMatrix::FloatMatrix(const TensorView& tensor) {
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.data) % alignof(float) == 0;
  if (tensor.dtype == DType::kF32 && aligned) {
    borrowed_ = reinterpret_cast<const float*>(tensor.data);
  } else {
    owned_ = ToFloat32(tensor);
  }
}

absl::StatusOr<LongformerWeights> LoadLongformerWeights(const LongformerConfig& config,
                                                        const Checkpoint& checkpoint,
                                                        const std::string& origin,
                                                        Compute compute) {
  return Loader(config, checkpoint, origin, compute).Load();
}

absl::StatusOr<double> CheckLongformerWeights(const LongformerConfig& config,
                                              const Checkpoint& checkpoint,
                                              const std::string& origin) {
  absl::StatusOr<LongformerWeights> weights =
      Loader(config, checkpoint, origin, std::nullopt).Load();
  if (!weights.ok()) return weights.status();
  return weights->parameters;
}

}  // namespace longview::models
