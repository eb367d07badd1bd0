#include "models/cst/device_weights.h"

#include <utility>

#include "models/device/device_layer_fill.h"

namespace longview::models {
namespace {

// Whether a layer's linears are there, in the order of CstLayer.
struct Parts {
  explicit Parts(const CstConfig& config)
      : tokens(config.mixer_size == 0),
        slices(!tokens || !config.shared_scales),
        pool(config.slice_pooling == CstPooling::kLinear),
        out(config.output_projection) {}

  bool tokens, slices, pool, out;
};

void AssignLayer(const CstConfig& config, DevicePlaces& places, DeviceCstLayer& layer) {
  const Parts parts(config);
  const int64_t width = config.width;
  if (parts.tokens) layer.token_project = places.Linear(3 * width, width);
  if (parts.slices) layer.own_slice_project = places.Linear(3 * width, width);
  if (parts.pool) layer.pool = places.Linear(width, config.slice * width);
  if (parts.out) layer.out = places.Linear(width, width);
  layer.expand = places.Linear(config.intermediate, width);
  layer.contract = places.Linear(width, config.intermediate);
  layer.attention_norm = places.Norm(width, config.norm_eps);
  layer.ffn_norm = places.Norm(width, config.norm_eps);
  const auto bias = [&](int64_t entries) {
    return DevicePlaceBias{places.Floats(entries * 3 * width), entries};
  };
  layer.slice_bias = bias(config.multi_scale() ? config.most_slices() : 1);
  if (!parts.tokens) {
    layer.mixer_in = places.Floats(int64_t{config.slice} * config.mixer_size);
    layer.mixer_in_bias = places.Floats(config.mixer_size);
    layer.mixer_out = places.Floats(int64_t{config.slice} * config.mixer_size);
    layer.mixer_out_bias = places.Floats(config.slice);
    return;
  }
  layer.token_bias = bias(config.multi_scale() ? config.slice : 1);
  if (config.relative_keys()) layer.key_rows = places.Typed(config.local_keys() * width);
  layer.boundary_keys = places.Typed(BoundaryRows(config) * width);
  layer.boundary_values = places.Typed(BoundaryRows(config) * width);
}

// Uploads what the checkpoint's loader reads.
class Sink final : public CstLayerSink {
 public:
  Sink(const CstConfig& config, DeviceFill& fill, DeviceCstWeights& weights)
      : fill_(fill), weights_(weights), layers_(fill, Linears(config, weights), Norms(weights)) {}

  absl::Status Linear(const std::string& name, std::span<const float> weight,
                      std::span<const float> bias) override {
    return layers_.Linear(name, weight, bias);
  }
  void Norms(std::span<const Norm* const> norms) override { layers_.Norms(norms); }

  absl::Status Tables(const std::string& name, const CstTables& tables,
                      const CstMixer* mixer) override {
    DeviceCstLayer& layer = weights_.layers[layer_++];
    const Compute compute = layer.expand.compute;
    fill_.Put(tables.slice_bias.values, layer.slice_bias.values);
    fill_.Put(tables.token_bias.values, layer.token_bias.values);
    const auto put = [&](const char* what, const std::vector<float>& values, void* to) {
      return fill_.PutTyped(name + what, values, compute, to);
    };
    absl::Status done = put("keys of positions", tables.key_rows, layer.key_rows);
    done.Update(put("keys beyond the borders", tables.boundary_keys, layer.boundary_keys));
    done.Update(put("values beyond the borders", tables.boundary_values, layer.boundary_values));
    if (!done.ok() || mixer == nullptr) return done;
    fill_.Put(mixer->in_weights, layer.mixer_in);
    fill_.Put(mixer->in_bias, layer.mixer_in_bias);
    fill_.Put(mixer->out_weights, layer.mixer_out);
    fill_.Put(mixer->out_bias, layer.mixer_out_bias);
    return absl::OkStatus();
  }

 private:
  static std::vector<DeviceLinear*> Linears(const CstConfig& config, DeviceCstWeights& weights) {
    const Parts parts(config);
    std::vector<DeviceLinear*> linears;
    if (config.embedding_width != config.width) linears.push_back(&weights.embedding_project);
    for (DeviceCstLayer& layer : weights.layers) {
      if (parts.tokens) linears.push_back(&layer.token_project);
      if (parts.slices) linears.push_back(&layer.own_slice_project);
      if (parts.pool) linears.push_back(&layer.pool);
      if (parts.out) linears.push_back(&layer.out);
      linears.insert(linears.end(), {&layer.expand, &layer.contract});
    }
    return linears;
  }
  static std::vector<const DeviceNorm*> Norms(const DeviceCstWeights& weights) {
    std::vector<const DeviceNorm*> norms;
    for (const DeviceCstLayer& layer : weights.layers) {
      norms.insert(norms.end(), {&layer.attention_norm, &layer.ffn_norm});
    }
    return norms;
  }

  DeviceFill& fill_;
  DeviceCstWeights& weights_;
  DeviceLayerFill layers_;
  size_t layer_ = 0;
};

}  // namespace

int64_t BoundaryRows(const CstConfig& config) {
  if (!config.zero_boundary || config.extension == 0) return 0;
  return !config.multi_scale() || config.relative_keys() ? 1 : 2 * config.extension;
}

void DeviceCstWeights::Assign(const CstConfig& config, DevicePlaces places) {
  const int64_t width = config.embedding_width;
  words = places.Floats(config.vocab * width);
  if (config.positions == CstPositions::kConventional) {
    positions = places.Floats(config.most_tokens * width);
  }
  if (config.types > 0) types = places.Floats(config.types * width);
  embedding_norm = places.Norm(width, config.norm_eps);
  if (width != config.width) embedding_project = places.Linear(config.width, width);
  norm = places.Norm(config.width, config.norm_eps);
  layers.resize(static_cast<size_t>(config.layers));
  for (DeviceCstLayer& layer : layers) AssignLayer(config, places, layer);
}

absl::StatusOr<CstWeights> DeviceCstWeights::Fill(const CstConfig& config,
                                                  const Checkpoint& checkpoint,
                                                  const std::string& origin, DeviceFill& fill) {
  Sink sink(config, fill, *this);
  absl::StatusOr<CstWeights> host = LoadCstHost(config, checkpoint, origin, sink);
  if (!host.ok()) return host;
  fill.PutTable(*host->words, 1, words);
  if (host->positions != nullptr) fill.PutTable(*host->positions, 1, positions);
  fill.Put(host->types, types);
  if (host->embedding_norm) fill.PutNorm(*host->embedding_norm, embedding_norm);
  if (host->norm) fill.PutNorm(*host->norm, norm);
  return host;
}

}  // namespace longview::models
