#include "models/vil/weights.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "models/vil/stored_bias.h"

namespace longview::models {
namespace {

// [rows, columns] to [columns, rows].
std::vector<float> Transposed(const std::vector<float>& in, int64_t rows, int64_t columns) {
  std::vector<float> out(in.size());
  for (int64_t r = 0; r < rows && !in.empty(); ++r) {
    for (int64_t c = 0; c < columns; ++c) out[c * rows + r] = in[r * columns + c];
  }
  return out;
}

class Loader {
 public:
  Loader(const VilConfig& config, const BackbonePlace* place, const Checkpoint& checkpoint,
         const std::string& origin, std::optional<WeightFormat> format, DeviceStore* store)
      : config_(config),
        backbone_(place),
        checkpoint_(checkpoint),
        origin_(origin),
        load_(checkpoint, origin, format),
        place_(load_, store),
        on_device_(store != nullptr) {}

  absl::StatusOr<VilWeights> Load();

 private:
  std::vector<float> Tensor(const std::string& name, const std::vector<int64_t>& shape) {
    return load_.Copy(load_.Get(prefix_ + name, shape));
  }
  Table TableOf(const std::string& name, const std::vector<int64_t>& shape, int64_t rows,
                int64_t width) {
    return place_.Values(Tensor(name, shape), rows, width);
  }
  NormWeight LayerNorm(const std::string& name, int64_t width, float eps) {
    return place_.Norm(load_.LayerNorm(name, width, eps), width);
  }
  // A tensor that the file may hold a second time.
  void Same(const std::string& name, const std::string& copy, const std::vector<int64_t>& shape) {
    const std::array<std::string, 2> names = {prefix_ + name, prefix_ + copy};
    const auto found = load_.source().GetTied(names, shape);
    if (!found.ok()) load_.Fail(found.status());
  }

  void Patch(size_t index, VilStageWeights& out);
  void Positions(const std::string& name, const VilStage& stage, VilStageWeights& out);
  void ClassRows(const std::string& name, const VilStage& stage, VilStageWeights& out);
  void Block(const std::string& attention, const std::string& mlp, const VilStage& stage,
             VilStageWeights& out);
  VilBias Bias(const std::string& name, const VilStage& stage);
  void Projections(const std::string& name, const VilStage& stage, VilBlock& block);
  void CheckIndex(const std::string& name, const VilStage& stage);
  void GlobalProjections(const std::string& name, int64_t d, VilBlock& block);
  void Extras(const std::string& name, const VilStage& stage, VilBlock& block);

  absl::Status FindPrefix();
  void Head();

  const VilConfig& config_;
  const BackbonePlace* const backbone_;
  const Checkpoint& checkpoint_;
  const std::string origin_;
  WeightLoader load_;
  WeightPlacer place_;
  const bool on_device_;
  std::string prefix_;
  VilWeights weights_;
};

void Loader::Patch(size_t index, VilStageWeights& out) {
  const VilStage& stage = config_.stages[index];
  const std::string name = absl::StrCat("layer", index + 1, ".0.");
  const int64_t d = stage.width, p = stage.patch;
  const int64_t c = index == 0 ? config_.channels : config_.stages[index - 1].width;
  if (index > 0) {
    out.patch = place_.Taps(prefix_ + name + "proj", d, c, p);
  } else {
    const std::vector<float> weight = Tensor(name + "proj.weight", {d, c, p, p});
    std::vector<float> bias = Tensor(name + "proj.bias", {d});
    out.patch = place_.Pixels(prefix_ + name + "proj", weight, std::move(bias), d, c * p * p);
  }
  if (config_.norm_embed) {
    out.patch_norm = LayerNorm(prefix_ + name + "norm_embed", d, config_.eps);
  }
  if (stage.absolute) Positions(name, stage, out);
  if (stage.globals > 0) ClassRows(name, stage, out);
}

void Loader::Positions(const std::string& name, const VilStage& stage, VilStageWeights& out) {
  const int64_t half = stage.width / 2;
  out.row_positions = Tensor(name + "x_pos_embed", {1, stage.map.height, half});
  out.column_positions = Tensor(name + "y_pos_embed", {1, stage.map.width, half});
  if (stage.globals == 0) load_.source().Ignore(prefix_ + name + "cls_pos_embed");  // [1, 0, d]
}

void Loader::ClassRows(const std::string& name, const VilStage& stage, VilStageWeights& out) {
  const std::vector<int64_t> shape = {1, stage.globals, stage.width};
  std::vector<float> rows = Tensor(name + "cls_token", shape);
  if (stage.absolute) {
    const std::vector<float> positions = Tensor(name + "cls_pos_embed", shape);
    for (size_t i = 0; i < rows.size() && i < positions.size(); ++i) rows[i] += positions[i];
  }
  out.class_rows = place_.Values(std::move(rows), stage.globals, stage.width);
}

VilBias Loader::Bias(const std::string& name, const VilStage& stage) {
  const int64_t heads = stage.heads, g = stage.globals;
  const int64_t entries = StoredBias(stage).entries;
  VilBias bias;
  bias.local = place_.Values(
      Transposed(Tensor(name + "local_relative_position_bias_table", {entries, heads}), entries,
                 heads),
      heads, entries);
  CheckIndex(name + "relative_position_index", stage);
  if (g == 0 || stage.attention == VilAttention::kLongShort) return bias;
  // [2, heads, g] to [heads, 2, g].
  const std::vector<float> mixed = Tensor(name + "g2l_relative_position_bias", {2, heads, g});
  std::vector<float> turned;
  for (int64_t h = 0; h < heads && !mixed.empty(); ++h) {
    for (int64_t side = 0; side < 2; ++side) {
      const auto from = mixed.begin() + (side * heads + h) * g;
      turned.insert(turned.end(), from, from + g);
    }
  }
  bias.mixed = place_.Values(std::move(turned), heads, 2 * g);
  bias.global = TableOf(name + "g2g_relative_position_bias", {heads, g, g}, heads, g * g);
  return bias;
}

// The index is derived; a stored one that differs belongs to another model.
void Loader::CheckIndex(const std::string& name, const VilStage& stage) {
  const std::string full = prefix_ + name;
  load_.source().Ignore(full);
  const TensorView* stored = checkpoint_.Find(full);
  if (stored == nullptr || !load_.ok()) return;
  const StoredBiasIndex index = StoredBias(stage);
  const std::vector<int64_t> shape = {index.queries, index.keys};
  if (stored->dtype != DType::kI64 || stored->shape != shape) {
    load_.Fail(absl::InvalidArgumentError(absl::StrCat(origin_, ": tensor \"", full,
                                                       "\" has shape ", ShapeText(stored->shape),
                                                       ", expected int64 ", ShapeText(shape))));
    return;
  }
  if (!load_.reads()) return;
  std::vector<int64_t> values(static_cast<size_t>(stored->elements()));
  absl::Status status = stored->Read(0, std::as_writable_bytes(std::span(values)));
  if (!status.ok()) return load_.Fail(std::move(status));
  for (int64_t i = 0; i < stored->elements(); ++i) {
    const int64_t found = values[static_cast<size_t>(i)];
    const int64_t wanted = index.At(i / index.keys, i % index.keys);
    if (found == wanted) continue;
    load_.Fail(absl::InvalidArgumentError(
        absl::StrCat(origin_, ": tensor \"", full, "\"[", i / index.keys, ", ", i % index.keys,
                     "] is ", found, ", by its formula ", wanted)));
    return;
  }
  checkpoint_.Release(*stored);
}

// Everything that attention reads of a token, in one product.
void Loader::Projections(const std::string& name, const VilStage& stage, VilBlock& block) {
  const int64_t d = stage.width;
  switch (stage.attention) {
    case VilAttention::kFull:
    case VilAttention::kPerformer:
      block.qkv = place_.Linear(name + "qkv", 3 * d, d);
      return;
    case VilAttention::kReduction:
      block.qkv = place_.Linear(name + "query", d, d);
      return;
    case VilAttention::kChunks:
    case VilAttention::kLinformer:
      block.qkv = place_.Stack(name, {{"query", d}, {"kv", 2 * d}}, d);
      return;
    case VilAttention::kLongShort: {
      const int64_t columns = int64_t{stage.heads} * stage.ranks;
      const WeightLoader::Part scores = {"to_dynamic_projection", columns};
      if (columns > 0 && on_device_) {
        block.qkv = place_.Stack(name, {{"qkv", 3 * d}, scores}, d);
      } else {
        block.qkv = place_.Linear(name + "qkv", 3 * d, d);
        if (columns > 0) block.landmarks = place_.Stack(name, {scores}, d);
      }
      block.token_norm = LayerNorm(name + "dual_ln_full", d, config_.dual_eps);
      block.landmark_norm = LayerNorm(name + "dual_ln_dp", d, config_.dual_eps);
      return;
    }
  }
}

// Shared projections are stored twice; a writer may have dropped the copies.
void Loader::GlobalProjections(const std::string& name, int64_t d, VilBlock& block) {
  if (!config_.share_w) {
    block.global_query = place_.Linear(prefix_ + name + "query_global", d, d);
    block.global_key_value = place_.Linear(prefix_ + name + "kv_global", 2 * d, d);
    block.global_out = place_.Linear(prefix_ + name + "proj_global", d, d);
    return;
  }
  for (const auto& [part, out] : {std::pair{"query", d}, {"kv", 2 * d}, {"proj", d}}) {
    const std::string local = name + part;
    Same(local + ".weight", local + "_global.weight", {out, d});
    Same(local + ".bias", local + "_global.bias", {out});
  }
}

void Loader::Extras(const std::string& name, const VilStage& stage, VilBlock& block) {
  const int64_t d = stage.width, f = stage.features;
  switch (stage.attention) {
    case VilAttention::kLinformer: {
      const int64_t n = stage.globals + int64_t{stage.map.height} * stage.map.width;
      block.project_keys = TableOf(name + "proj_k", {n, f}, n, f);
      if (config_.share_kv) {
        Same(name + "proj_k", name + "proj_v", {n, f});
      } else {
        block.project_values = TableOf(name + "proj_v", {n, f}, n, f);
      }
      return;
    }
    case VilAttention::kReduction: {
      const std::vector<float> weight = Tensor(name + "proj_sr.weight", {d, d, f, f});
      std::vector<float> moved;
      for (int64_t row = 0; row < d && !weight.empty(); ++row) {
        const auto from = weight.begin() + row * d * f * f;
        const std::vector<float> turned = Transposed({from, from + d * f * f}, d, f * f);
        moved.insert(moved.end(), turned.begin(), turned.end());
      }
      block.reduce =
          place_.Pack(prefix_ + name + "proj_sr", moved, std::vector<float>(d), d, f * f * d);
      block.key_value = place_.Linear(prefix_ + name + "kv", 2 * d, d);
      return;
    }
    case VilAttention::kPerformer:
      block.features = TableOf(name + "fast_attention.projection_matrix", {f, stage.head_dim()}, f,
                               stage.head_dim());
      return;
    default:
      return;
  }
}

void Loader::Block(const std::string& attention, const std::string& mlp, const VilStage& stage,
                   VilStageWeights& out) {
  const int64_t d = stage.width;
  const std::string attn = attention + "attn.";
  VilBlock block;
  block.attention_norm = LayerNorm(prefix_ + attention + "norm", d, config_.eps);
  const std::string attn_prefix = prefix_ + attn;
  Projections(attn_prefix, stage, block);
  block.out = place_.Linear(attn_prefix + "proj", d, d);
  if (stage.attention == VilAttention::kChunks && stage.globals > 0) {
    GlobalProjections(attn, d, block);
  }
  if (stage.relative_bias()) block.bias = Bias(attn, stage);
  Extras(attn, stage, block);
  block.mlp_norm = LayerNorm(prefix_ + mlp + "norm", d, config_.eps);
  block.expand = place_.Linear(prefix_ + mlp + "mlp.fc1", stage.hidden, d);
  block.contract = place_.Linear(prefix_ + mlp + "mlp.fc2", d, stage.hidden);
  out.blocks.push_back(std::move(block));
}

absl::Status Loader::FindPrefix() {
  if (backbone_ != nullptr) {
    prefix_ = backbone_->prefix;
    for (const std::string& pattern : backbone_->others) load_.source().Ignore(pattern);
    return absl::OkStatus();
  }
  constexpr std::array<std::string_view, 2> kPrefixes = {"", "module."};
  ASSIGN_OR_RETURN(const std::string prefix,
                   load_.source().FindPrefix(kPrefixes, "layer1.0.proj.weight"));
  prefix_ = prefix;
  return absl::OkStatus();
}

// In a detector both are what the classifier left.
void Loader::Head() {
  if (config_.backbone) {
    load_.source().Ignore(prefix_ + "norm.*");
    load_.source().Ignore(prefix_ + "head.*");
    return;
  }
  const int64_t d = config_.feature_width();
  weights_.norm = LayerNorm(prefix_ + "norm", d, config_.eps);
  if (!config_.labels.empty()) {
    weights_.head = load_.Dense(prefix_ + "head", static_cast<int64_t>(config_.labels.size()), d);
  }
}

absl::StatusOr<VilWeights> Loader::Load() {
  RETURN_IF_ERROR(FindPrefix());
  load_.source().Ignore(prefix_ + "calls_since_last_redraw");
  for (size_t s = 0; s < config_.stages.size() && load_.ok(); ++s) {
    VilStageWeights stage;
    Patch(s, stage);
    for (int k = 0; k < config_.stages[s].blocks && load_.ok(); ++k) {
      Block(absl::StrCat("layer", s + 1, ".", 2 * k + 1, "."),
            absl::StrCat("layer", s + 1, ".", 2 * k + 2, "."), config_.stages[s], stage);
    }
    weights_.stages.push_back(std::move(stage));
  }
  int64_t widest = 0;
  for (const VilStage& stage : config_.stages) widest = std::max<int64_t>(widest, stage.width);
  weights_.zeros =
      place_.Typed("zeros", std::vector<float>(static_cast<size_t>(widest)), 1, widest);
  Head();
  RETURN_IF_ERROR(load_.Finish());
  weights_.parameters = load_.parameters();
  weights_.memory_bytes = load_.memory_bytes();
  return std::move(weights_);
}

}  // namespace

absl::StatusOr<VilWeights> LoadVilWeights(const VilConfig& config, const BackbonePlace* place,
                                          const Checkpoint& checkpoint, const std::string& origin,
                                          std::optional<WeightFormat> format, DeviceStore* store) {
  return Loader(config, place, checkpoint, origin, format, store).Load();
}

}  // namespace longview::models
