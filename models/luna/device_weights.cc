#include "models/luna/device_weights.h"

#include "models/device/device_layer_fill.h"

namespace longview::models {

void DeviceLunaWeights::Assign(const LunaConfig& config, DevicePlaces places) {
  const int64_t width = config.width;
  words = places.Floats(config.vocab * width);
  const bool has_positions = config.positions != LunaPositions::kNone;
  positions = places.Floats(has_positions ? config.position_rows() * width : 0);
  projected = places.Floats(config.projected * width);
  for (DeviceNorm* norm : {&embedding_norm, &final_norm, &final_projected_norm}) {
    *norm = places.Norm(width, config.norm_eps);
  }
  layers.resize(config.tied_layers ? 1 : static_cast<size_t>(config.layers));
  for (DeviceLunaLayer& layer : layers) {
    layer.project = places.Linear((config.tied_kv ? 2 : 3) * width, width);
    layer.pack_query = places.Linear(width, width);
    layer.unpack = places.Linear((config.tied_kv ? 1 : 2) * width, width);
    layer.out = places.Linear(width, width);
    layer.expand = places.Linear(config.intermediate, width);
    layer.contract = places.Linear(width, config.intermediate);
    for (DeviceNorm* norm : {&layer.attention_norm, &layer.projected_norm, &layer.output_norm}) {
      *norm = places.Norm(width, config.norm_eps);
    }
  }
}

absl::StatusOr<LunaWeights> DeviceLunaWeights::Fill(const LunaConfig& config,
                                                    const Checkpoint& checkpoint,
                                                    const std::string& origin, DeviceFill& fill) {
  std::vector<DeviceLinear*> linears;
  std::vector<const DeviceNorm*> norms;
  for (DeviceLunaLayer& layer : layers) {
    linears.insert(linears.end(), {&layer.project, &layer.pack_query, &layer.unpack, &layer.out,
                                   &layer.expand, &layer.contract});
    norms.insert(norms.end(), {&layer.attention_norm, &layer.projected_norm, &layer.output_norm});
  }
  DeviceLayerFill sink(fill, std::move(linears), std::move(norms));
  absl::StatusOr<LunaWeights> host = LoadLunaHost(config, checkpoint, origin, sink);
  if (!host.ok()) return host;
  fill.PutTable(*host->words, 1, words);
  if (config.positions == LunaPositions::kLearned) fill.PutTable(*host->positions, 1, positions);
  fill.Put(host->sinusoids, positions);
  fill.Put(host->projected, projected);
  fill.PutNorm(host->embedding_norm, embedding_norm);
  fill.PutNorm(host->final_norm, final_norm);
  fill.PutNorm(host->final_projected_norm, final_projected_norm);
  return host;
}

}  // namespace longview::models
