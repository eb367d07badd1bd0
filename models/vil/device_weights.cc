#include "models/vil/device_weights.h"

#include <algorithm>
#include <utility>

#include "models/vil/stored_bias.h"

namespace longview::models {
namespace {

int64_t TokensOf(const VilStage& stage) {
  return stage.globals + int64_t{stage.map.height} * stage.map.width;
}

class Assigner {
 public:
  Assigner(const VilConfig& config, Compute compute, Carver& carver)
      : config_(config), places_(compute, carver) {}

  void Run(DeviceVilWeights& weights) {
    int64_t widest = 0, channels = config_.channels;
    for (const VilStage& stage : config_.stages) {
      DeviceVilStageWeights& to = weights.stages.emplace_back();
      const int64_t d = stage.width, patch = stage.patch;
      to.patch = places_.Linear(d, channels * patch * patch);
      if (config_.norm_embed) to.patch_norm = places_.Norm(d, config_.eps);
      to.class_rows = places_.Floats(stage.globals * d);
      for (int b = 0; b < stage.blocks; ++b) to.blocks.push_back(Block(stage));
      widest = std::max(widest, channels = d);
    }
    if (!config_.backbone) weights.norm = places_.Norm(channels, config_.eps);
    weights.zeros = places_.Typed(widest);
  }

 private:
  DeviceVilBlock Block(const VilStage& stage) {
    const int64_t d = stage.width;
    DeviceVilBlock block;
    block.attention_norm = places_.Norm(d, config_.eps);
    block.mlp_norm = places_.Norm(d, config_.eps);
    const bool long_short = stage.attention == VilAttention::kLongShort;
    const int64_t landmarks = long_short ? int64_t{stage.heads} * stage.ranks : 0;
    const bool reduces = stage.attention == VilAttention::kReduction;
    block.qkv = places_.Linear(reduces ? d : 3 * d + landmarks, d);
    block.out = places_.Linear(d, d);
    if (stage.attention == VilAttention::kChunks && stage.globals > 0 && !config_.share_w) {
      block.global_query = places_.Linear(d, d);
      block.global_key_value = places_.Linear(2 * d, d);
      block.global_out = places_.Linear(d, d);
    }
    if (stage.relative_bias()) Bias(stage, block);
    Extras(stage, block);
    block.expand = places_.Linear(stage.hidden, d);
    block.contract = places_.Linear(d, stage.hidden);
    return block;
  }

  void Bias(const VilStage& stage, DeviceVilBlock& block) {
    const int64_t heads = stage.heads, g = stage.globals;
    block.local_bias = places_.Floats(heads * StoredBias(stage).entries);
    block.mixed_bias = places_.Floats(heads * 2 * g);
    block.global_bias = places_.Floats(heads * g * g);
  }

  void Extras(const VilStage& stage, DeviceVilBlock& block) {
    const int64_t d = stage.width, f = stage.features;
    switch (stage.attention) {
      case VilAttention::kLinformer:
        block.project_keys = places_.Floats(TokensOf(stage) * f);
        block.project_values =
            config_.share_kv ? block.project_keys : places_.Floats(TokensOf(stage) * f);
        return;
      case VilAttention::kReduction:
        block.reduce = places_.Linear(d, f * f * d);
        block.key_value = places_.Linear(2 * d, d);
        return;
      case VilAttention::kPerformer:
        block.features = places_.Floats(f * stage.head_dim());
        return;
      case VilAttention::kLongShort:
        block.token_norm = places_.Norm(d, config_.dual_eps);
        block.landmark_norm = places_.Norm(d, config_.dual_eps);
        return;
      default:
        return;
    }
  }

  const VilConfig& config_;
  DevicePlaces places_;
};

// In the order in which LoadVilHost hands them over.
std::vector<DeviceLinear*> LinearsOf(DeviceVilWeights& weights) {
  std::vector<DeviceLinear*> linears;
  for (DeviceVilStageWeights& stage : weights.stages) {
    linears.push_back(&stage.patch);
    for (DeviceVilBlock& block : stage.blocks) {
      for (std::optional<DeviceLinear>* linear :
           {&block.qkv, &block.out, &block.global_query, &block.global_key_value, &block.global_out,
            &block.reduce, &block.key_value, &block.expand, &block.contract}) {
        if (linear->has_value()) linears.push_back(&**linear);
      }
    }
  }
  return linears;
}

// Linears as they come. One that is not whole yet waits for the rest of its outputs.
class LinearFill {
 public:
  LinearFill(DeviceFill& fill, std::vector<DeviceLinear*> places)
      : fill_(fill), places_(std::move(places)) {}

  absl::Status Put(const std::string& name, std::span<const float> weight,
                   std::span<const float> bias) {
    weight_.insert(weight_.end(), weight.begin(), weight.end());
    bias_.insert(bias_.end(), bias.begin(), bias.end());
    DeviceLinear& place = *places_[next_];
    const auto outputs = static_cast<int64_t>(bias_.size());
    if (outputs < place.out) return absl::OkStatus();
    if (outputs > place.out) return absl::InternalError(name + ": of another shape than planned");
    absl::Status put = fill_.PutLinear(name, weight_, bias_, place);
    weight_.clear();
    bias_.clear();
    ++next_;
    return put;
  }

 private:
  DeviceFill& fill_;
  const std::vector<DeviceLinear*> places_;
  size_t next_ = 0;
  std::vector<float> weight_, bias_;
};

void FillBlock(const VilBlock& from, const DeviceVilBlock& to, DeviceFill& fill) {
  fill.PutNorm(from.attention_norm, to.attention_norm);
  fill.PutNorm(from.mlp_norm, to.mlp_norm);
  fill.PutNorm(from.token_norm, to.token_norm);
  fill.PutNorm(from.landmark_norm, to.landmark_norm);
  fill.Put(from.bias.local, to.local_bias);
  fill.Put(from.bias.mixed, to.mixed_bias);
  fill.Put(from.bias.global, to.global_bias);
  fill.Put(from.project_keys, to.project_keys);
  fill.Put(from.project_values, to.project_values);
  fill.Put(from.features, to.features);
}

void FillStage(const VilStageWeights& from, const DeviceVilStageWeights& to, DeviceFill& fill) {
  fill.PutNorm(from.patch_norm, to.patch_norm);
  std::vector<float> class_rows = from.class_tokens;
  for (size_t i = 0; i < from.class_positions.size(); ++i) class_rows[i] += from.class_positions[i];
  fill.Put(class_rows, to.class_rows);
  for (size_t b = 0; b < from.blocks.size(); ++b) FillBlock(from.blocks[b], to.blocks[b], fill);
}

}  // namespace

size_t DeviceVilWeightBytes(const VilConfig& config, Compute compute) {
  Carver carver(nullptr);
  DeviceVilWeights weights;
  Assigner(config, compute, carver).Run(weights);
  return carver.used();
}

absl::StatusOr<VilOnDevice> LoadDeviceVilWeights(const VilConfig& config,
                                                 const BackbonePlace* place,
                                                 const Checkpoint& checkpoint,
                                                 const std::string& origin, Compute compute,
                                                 const Device& device) {
  DeviceVilWeights weights;
  weights.block = std::make_unique<DeviceBlock>(device, DeviceVilWeightBytes(config, compute));
  Carver carver(weights.block->data());
  Assigner(config, compute, carver).Run(weights);
  DeviceFill fill(device);
  LinearFill linears(fill, LinearsOf(weights));
  absl::StatusOr<VilWeights> host =
      LoadVilHost(config, place, checkpoint, origin,
                  [&](const std::string& name, std::span<const float> weight,
                      std::span<const float> bias) { return linears.Put(name, weight, bias); });
  if (!host.ok()) return host.status();
  for (size_t s = 0; s < weights.stages.size(); ++s) {
    FillStage(host->stages[s], weights.stages[s], fill);
  }
  fill.PutNorm(host->norm, weights.norm);
  const std::vector<float> zeros(
      static_cast<size_t>(std::ranges::max(config.stages, {}, [](const VilStage& stage) {
                            return stage.width;
                          }).width));
  absl::Status put = fill.PutTyped("zeros", zeros, compute, weights.zeros);
  if (!put.ok()) return put;
  return VilOnDevice{*std::move(host), std::move(weights)};
}

}  // namespace longview::models
