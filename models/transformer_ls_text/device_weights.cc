#include "models/transformer_ls_text/device_weights.h"

#include "models/device/device_layer_fill.h"

namespace longview::models {

void DeviceLsTextWeights::Assign(const LsTextConfig& config, DevicePlaces places) {
  const int64_t width = config.width;
  words = places.Floats(config.vocab * width);
  positions = places.Floats(config.positions * width);
  class_vector = places.Floats(width);
  norm = places.Norm(width, config.norm_eps);
  layers.resize(config.tied ? 1 : static_cast<size_t>(config.layers));
  for (DeviceLsTextLayer& layer : layers) {
    layer.project = places.Linear(3 * width + config.columns(), width);
    layer.out = places.Linear(width, width);
    layer.expand = places.Linear(config.intermediate, width);
    layer.contract = places.Linear(width, config.intermediate);
    for (DeviceNorm* of_layer :
         {&layer.attention_norm, &layer.token_norm, &layer.landmark_norm, &layer.mlp_norm}) {
      *of_layer = places.Norm(width, config.norm_eps);
    }
  }
}

absl::StatusOr<LsTextWeights> DeviceLsTextWeights::Fill(const LsTextConfig& config,
                                                        const Checkpoint& checkpoint,
                                                        const std::string& origin,
                                                        DeviceFill& fill) {
  std::vector<DeviceLinear*> linears;
  std::vector<const DeviceNorm*> norms;
  for (DeviceLsTextLayer& layer : layers) {
    linears.insert(linears.end(), {&layer.project, &layer.out, &layer.expand, &layer.contract});
    norms.insert(norms.end(),
                 {&layer.attention_norm, &layer.token_norm, &layer.landmark_norm, &layer.mlp_norm});
  }
  DeviceLayerFill sink(fill, std::move(linears), std::move(norms));
  absl::StatusOr<LsTextWeights> host = LoadLsTextHost(config, checkpoint, origin, sink);
  if (!host.ok()) return host;
  fill.PutTable(*host->words, 1, words);
  fill.PutTable(*host->positions, 1, positions);
  fill.Put(host->class_vector, class_vector);
  fill.PutNorm(host->norm, norm);
  return host;
}

}  // namespace longview::models
