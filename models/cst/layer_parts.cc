#include "models/cst/layer_parts.h"

#include "models/ops/feed_forward.h"

namespace longview::models {

kernels::Source CstBoundary(const CstConfig& config, const CstLayer& layer) {
  kernels::Source zeros;
  zeros.k = layer.boundary_keys.data();
  zeros.v = layer.boundary_values.data();
  zeros.dtype = layer.boundary_keys.dtype();
  zeros.k_row_stride = zeros.v_row_stride = layer.boundary_keys.rows() == 1 ? 0 : config.width;
  zeros.k_head_stride = zeros.v_head_stride = config.head_dim();
  return zeros;
}

kernels::Table CstKeyPlaces(const CstConfig& config, const CstLayer& layer) {
  kernels::Table places;
  places.data = layer.key_rows.data();
  places.dtype = layer.key_rows.dtype();
  places.entries = config.local_keys();
  places.head_stride = config.head_dim();
  places.entry_stride = config.width;
  return places;
}

BlockWeights CstBlock(const CstConfig& config, const CstWeights& weights, int layer) {
  const CstLayer& own = weights.layers[static_cast<size_t>(layer)];
  const bool pre = config.norms == NormPlace::kPre;
  BlockWeights block;
  block.out = config.output_projection ? &own.out : nullptr;
  block.after_attention = pre ? &own.ffn_norm : &own.attention_norm;
  block.expand = &own.expand;
  block.contract = &own.contract;
  if (!pre) {
    block.after_layer = &own.ffn_norm;
  } else if (layer + 1 < config.layers) {
    block.after_layer = &weights.layers[static_cast<size_t>(layer) + 1].attention_norm;
  }
  block.activation = config.activation;
  block.norms = config.norms;
  return block;
}

}  // namespace longview::models
