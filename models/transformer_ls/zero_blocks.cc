#include "models/transformer_ls/zero_blocks.h"

#include <algorithm>

namespace longview::models {

ZeroBlocks::ZeroBlocks(const LsLmConfig& config, const LsLmWeights& weights, kernels::DType blocks)
    : layout_(blocks, config.head_dim(), config.head_dim(), config.heads),
      block_bytes_(layout_.k_block_bytes() * static_cast<size_t>(config.heads)),
      data_(block_bytes_ * kParts * weights.zero.size()) {
  const int slots = std::max(config.window, config.memory / config.segment * config.rank);
  table_.assign(static_cast<size_t>(slots / kernels::kBlockSlots + 1), 0);
  const auto fill = [&](int layer, Part part, const std::vector<float>& row, bool key) {
    for (int head = 0; head < config.heads; ++head) {
      std::byte* block =
          Block(layer, part) + (key ? layout_.KBlock(0, head) : layout_.VBlock(0, head));
      key ? layout_.ClearK(block) : layout_.ClearV(block);
      const float* from = row.data() + head * config.head_dim();
      for (int slot = 0; slot < kernels::kBlockSlots; ++slot) {
        if (key) {
          layout_.WriteK(block, slot, from, kernels::DType::kFloat32);
        } else {
          layout_.WriteV(block, slot, from, kernels::DType::kFloat32);
        }
      }
    }
  };
  for (size_t i = 0; i < weights.zero.size(); ++i) {
    const int layer = static_cast<int>(i);
    fill(layer, kWindowKey, weights.zero[i].window_key, true);
    fill(layer, kWindowValue, weights.zero[i].window_value, false);
    fill(layer, kSegmentKey, weights.zero[i].segment_key, true);
    fill(layer, kSegmentValue, weights.zero[i].segment_value, false);
  }
}

kernels::Source ZeroBlocks::MakeSource(int layer, Part key, Part value,
                                       const std::vector<int32_t>& sequence_offsets) const {
  kernels::Source source;
  source.k = Block(layer, key);
  source.v = Block(layer, value);
  source.dtype = layout_.dtype();
  source.layout = kernels::Layout::kPaged;
  source.kv_heads = layout_.kv_heads();
  source.block_table = table_.data();
  source.seq_offset = sequence_offsets.data();
  return source;
}

kernels::Source ZeroBlocks::Segments(int layer, const std::vector<int32_t>& offsets) const {
  return MakeSource(layer, kSegmentKey, kSegmentValue, offsets);
}

kernels::Source ZeroBlocks::Window(int layer, const std::vector<int32_t>& offsets) const {
  return MakeSource(layer, kWindowKey, kWindowValue, offsets);
}

}  // namespace longview::models
