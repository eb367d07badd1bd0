#include "models/cst/weights.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/checkpoint/convert.h"
#include "models/cst/positions.h"
#include "models/layers/weight_loader.h"
#include "models/ops/family_loader.h"

namespace longview::models {
namespace {

class Loader : public FamilyLoader<CstConfig, CstWeights> {
 public:
  using FamilyLoader::FamilyLoader;

  absl::StatusOr<CstWeights> Load();

 private:
  // P_l and P_g of one layer or of all.
  struct PositionTables {
    std::vector<float> local, global;
  };

  // Biases, and positions multiplied out, of one layer.
  struct PlaceTables {
    CstBias token_bias, slice_bias;
    std::vector<float> key_rows;
    std::vector<float> boundary_keys, boundary_values;
  };

  Table FloatTensor(const std::string& name, int64_t rows, int64_t width) {
    return Counted(load_.Copy(load_.Get(name, {rows, width})), rows, width);
  }
  // A table of these values, whose bytes stay.
  Table Counted(std::vector<float> values, int64_t rows, int64_t width);
  PositionTables ReadPositions(const std::string& prefix);
  void Embeddings();
  void Layer(int index);
  Weight Project(const std::string& self, const std::string& suffix);
  Weight LinearPool(const std::string& self);
  PlaceMixer Mixer(const std::string& self);
  // A linear of the mixer, transposed.
  Table PlaceWeights(const std::string& name, int64_t out, int64_t in);
  void PlacePositions(const std::string& self, PlaceTables tables, CstLayer& layer);
  PlaceTables MultiplyOut(const std::string& self, const PositionTables& positions);
  CstProjections ProjectionsOf(const std::string& self, const std::string& suffix);
  void Head();
  void MaskedLmHead();
  void CausalHead();

  const TensorView* words_ = nullptr;
  PositionTables shared_;
};

Table Loader::Counted(std::vector<float> values, int64_t rows, int64_t width) {
  load_.CountBytes(4.0 * static_cast<double>(values.size()));
  return place_.Values(std::move(values), rows, width);
}

Loader::PositionTables Loader::ReadPositions(const std::string& prefix) {
  PositionTables tables;
  const int64_t width = config_.width;
  const int64_t places = config_.tiled ? config_.slice : config_.local_keys();
  if (config_.mixer_size == 0) {
    tables.local = load_.Copy(load_.Get(prefix + "local_embeddings.weight", {places, width}));
  }
  tables.global =
      load_.Copy(load_.Get(prefix + "global_embeddings.weight", {config_.most_slices(), width}));
  return tables;
}

void Loader::Embeddings() {
  const std::string prefix = "cst.embeddings.";
  const int64_t width = config_.embedding_width;
  words_ = load_.Get(prefix + "word_embeddings.weight", {config_.vocab, width});
  weights_.words = place_.Stored(words_, config_.vocab, width);
  if (config_.positions == CstPositions::kConventional) {
    weights_.positions = place_.Stored(
        load_.Get(prefix + "position_embeddings.weight", {config_.most_tokens, width}),
        config_.most_tokens, width);
  }
  if (config_.types > 0) {
    weights_.types = FloatTensor(prefix + "token_type_embeddings.weight", config_.types, width);
  }
  if (config_.embedding_norm) {
    weights_.embedding_norm =
        place_.Norm(load_.LayerNorm(prefix + "LayerNorm", width, config_.norm_eps), width);
  }
  if (width != config_.width) {
    weights_.embedding_project = place_.Linear("cst.embeddings_project", config_.width, width);
  }
  if (config_.multi_scale() && config_.shared_tables) shared_ = ReadPositions("cst.ms_vipe.");
}

Weight Loader::Project(const std::string& self, const std::string& suffix) {
  const int64_t width = config_.width;
  const bool bias = config_.attention_bias;
  return place_.Stack(self,
                      {{"query" + suffix, width, bias},
                       {"key" + suffix, width, bias},
                       {"value" + suffix, width, bias}},
                      width);
}

// A convolution with kernel and stride L [D, D, L] as a linear of a slice's tokens end to end.
Weight Loader::LinearPool(const std::string& self) {
  const int64_t width = config_.width, places = config_.slice;
  const std::string name = self + "slice_pooling";
  const std::vector<float> stored = load_.Copy(load_.Get(name + ".weight", {width, width, places}));
  std::vector<float> weight(stored.size());
  for (int64_t at = 0; at < static_cast<int64_t>(stored.size()); ++at) {
    const int64_t place = at % places, channel = at / places % width, out = at / places / width;
    weight[static_cast<size_t>((out * places + place) * width + channel)] =
        stored[static_cast<size_t>(at)];
  }
  return place_.Pack(name, weight, load_.Vector(name + ".bias", width), width, places * width);
}

std::vector<float> Transposed(const std::vector<float>& matrix, size_t rows, size_t columns) {
  std::vector<float> result(matrix.size());
  for (size_t at = 0; at < matrix.size(); ++at) {
    result[at % columns * rows + at / columns] = matrix[at];
  }
  return result;
}

Table Loader::PlaceWeights(const std::string& name, int64_t out, int64_t in) {
  const std::vector<float> stored = load_.Copy(load_.Get(name, {out, in}));
  return Counted(Transposed(stored, static_cast<size_t>(out), static_cast<size_t>(in)), in, out);
}

PlaceMixer Loader::Mixer(const std::string& self) {
  const int64_t hidden = config_.mixer_size, places = config_.slice;
  const std::string in = self + "local_mixer.dense_in", out = self + "local_mixer.dense_out";
  PlaceMixer mixer;
  mixer.in = PlaceWeights(in + ".weight", hidden, places);
  mixer.in_bias = place_.Values(load_.Vector(in + ".bias", hidden), 1, hidden);
  mixer.out = PlaceWeights(out + ".weight", places, hidden);
  mixer.out_bias = place_.Values(load_.Vector(out + ".bias", places), 1, places);
  return mixer;
}

CstProjections Loader::ProjectionsOf(const std::string& self, const std::string& suffix) {
  const auto read = [&](const std::string& part, const char* kind) {
    return load_.Copy(checkpoint_.Find(self + part + suffix + kind));
  };
  CstProjections projections;
  projections.width = config_.width;
  projections.bias.resize(static_cast<size_t>(3 * config_.width));
  if (config_.attention_bias) {
    projections.bias.clear();
    for (const char* part : {"query", "key", "value"}) {
      const std::vector<float> bias = read(part, ".bias");
      projections.bias.insert(projections.bias.end(), bias.begin(), bias.end());
    }
  }
  if (!config_.multi_scale()) return projections;
  projections.query = read("query", ".weight");
  projections.key = read("key", ".weight");
  return projections;
}

Loader::PlaceTables Loader::MultiplyOut(const std::string& self, const PositionTables& positions) {
  PlaceTables tables;
  const std::string suffix = config_.shared_scales ? "" : "_global";
  tables.slice_bias = SliceBias(config_, ProjectionsOf(self, suffix), positions.global);
  if (config_.mixer_size > 0) return tables;
  const CstProjections local = ProjectionsOf(self, "");
  tables.token_bias = TokenBias(config_, local, positions.local);
  if (config_.relative_keys()) tables.key_rows = KeyRows(local, positions.local);
  if (!config_.zero_boundary || config_.extension == 0) return tables;
  tables.boundary_keys = BoundaryKeys(config_, tables.token_bias);
  tables.boundary_values = BoundaryValues(config_, tables.token_bias);
  return tables;
}

void Loader::PlacePositions(const std::string& self, PlaceTables tables, CstLayer& layer) {
  const int64_t width = config_.width, boundary = BoundaryRows(config_);
  const bool places = config_.multi_scale();
  layer.slice_bias =
      Counted(std::move(tables.slice_bias.values), places ? config_.most_slices() : 1, 3 * width);
  if (config_.mixer_size > 0) return;
  layer.token_bias =
      Counted(std::move(tables.token_bias.values), places ? config_.slice : 1, 3 * width);
  const auto typed = [&](const char* what, std::vector<float> values, int64_t rows) {
    load_.CountBytes(4.0 * static_cast<double>(values.size()));
    return place_.Typed(self + what, std::move(values), rows, width);
  };
  if (config_.relative_keys()) {
    layer.key_rows = typed("keys of positions", std::move(tables.key_rows), config_.local_keys());
  }
  if (boundary == 0) return;
  layer.boundary_keys = typed("keys beyond the borders", std::move(tables.boundary_keys), boundary);
  layer.boundary_values =
      typed("values beyond the borders", std::move(tables.boundary_values), boundary);
}

void Loader::Layer(int index) {
  const std::string prefix = absl::StrCat("cst.encoder.layer.", index, ".");
  const std::string self = prefix + "attention.self.";
  const int64_t width = config_.width;
  const bool mixes = config_.mixer_size > 0;
  CstLayer& layer = weights_.layers.emplace_back();
  if (!mixes) layer.token_project = Project(self, "");
  if (mixes || !config_.shared_scales) {
    layer.own_slice_project = Project(self, config_.shared_scales ? "" : "_global");
  }
  if (config_.slice_pooling == CstPooling::kLinear) layer.pool = LinearPool(self);
  if (mixes) layer.mixer = Mixer(self);
  if (config_.output_projection) {
    layer.out =
        place_.Linear(prefix + "attention.output.dense", width, width, config_.attention_bias);
  }
  layer.attention_norm = LayerNorm(prefix + "attention.output.LayerNorm");
  layer.expand = place_.Linear(prefix + "intermediate.dense", config_.intermediate, width);
  layer.contract = place_.Linear(prefix + "output.dense", width, config_.intermediate);
  layer.ffn_norm = LayerNorm(prefix + "output.LayerNorm");
  PositionTables own;
  const bool own_tables = config_.multi_scale() && !config_.shared_tables;
  if (own_tables) own = ReadPositions(self + "ms_vipe.");
  const bool read = load_.ok() && load_.reads();
  PlacePositions(self, read ? MultiplyOut(self, own_tables ? own : shared_) : PlaceTables(), layer);
}

// BERT's: a dense layer and a norm, then the words' own embeddings.
void Loader::MaskedLmHead() {
  const int64_t width = config_.embedding_width, vocab = config_.vocab;
  weights_.head_dense = load_.Dense("cls.predictions.transform.dense", width, config_.width);
  weights_.head_norm =
      load_.LayerNorm("cls.predictions.transform.LayerNorm", width, config_.norm_eps);
  const TensorView* decoder = words_;
  if (!config_.tied) decoder = load_.Get("cls.predictions.decoder.weight", {vocab, width});
  std::vector<float> bias = DecoderBias("cls.predictions.decoder.bias", "cls.predictions.bias",
                                        config_.tied, vocab, load_);
  const std::vector<float> weight = load_.Copy(decoder);
  weights_.head_out = load_.Pack("cls.predictions", weight, std::move(bias), vocab, width);
}

void Loader::CausalHead() {
  const int64_t width = config_.width, vocab = config_.vocab;
  const auto tails = static_cast<int64_t>(config_.cutoffs.size());
  const TensorView* decoder = config_.tied ? words_ : load_.Get("lm_head.weight", {vocab, width});
  std::vector<float> bias(static_cast<size_t>(vocab));
  if (config_.head_bias || tails > 0) bias = load_.Vector("lm_head.bias", vocab);
  std::vector<float> weight = load_.Copy(decoder);
  if (tails > 0) {
    const std::vector<float> rows = load_.Copy(load_.Get("lm_head.cluster_weight", {tails, width}));
    const std::vector<float> row_bias = load_.Vector("lm_head.cluster_bias", tails);
    weight.insert(weight.end(), rows.begin(), rows.end());
    bias.insert(bias.end(), row_bias.begin(), row_bias.end());
  }
  weights_.logits = place_.Pack("lm_head", weight, std::move(bias), vocab + tails, width);
}

void Loader::Head() {
  const int64_t width = config_.width;
  const auto labels = static_cast<int64_t>(config_.labels.size());
  switch (config_.head) {
    case CstHead::kClassifier:
    case CstHead::kMatching: {
      const int64_t parts = config_.head == CstHead::kClassifier ? 1 : config_.differences ? 4 : 2;
      weights_.head_dense = load_.Dense("classifier.dense", config_.head_hidden, parts * width);
      weights_.head_out = load_.Dense("classifier.out_proj", labels, config_.head_hidden);
      return;
    }
    case CstHead::kPooled:
      if (config_.pooler) weights_.pooler = load_.Dense("cst.pooler.dense", width, width);
      weights_.head_out = load_.Dense("classifier", labels, width);
      return;
    case CstHead::kMaskedLm:
      return MaskedLmHead();
    case CstHead::kCausalLm:
      return CausalHead();
  }
}

absl::StatusOr<CstWeights> Loader::Load() {
  Embeddings();
  for (int i = 0; i < config_.layers && load_.ok(); ++i) Layer(i);
  if (config_.final_norm) weights_.norm = LayerNorm("cst.encoder.LayerNorm");
  Head();
  return Finish();
}

}  // namespace

absl::StatusOr<CstWeights> LoadCstWeights(const CstConfig& config, const Checkpoint& checkpoint,
                                          const std::string& origin,
                                          std::optional<WeightFormat> format, DeviceStore* store) {
  return Loader(config, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
