#include "models/transformer_ls/zero_blocks.h"

#include <algorithm>

namespace longview::models {

std::vector<float> ZeroRowBlock(const std::vector<float>& row, int head_dim, int pitch) {
  const auto heads = static_cast<int>(row.size()) / head_dim;
  std::vector<float> block(static_cast<size_t>(heads * kernels::kBlockSlots * pitch));
  for (int i = 0; i < heads * kernels::kBlockSlots; ++i) {
    std::copy_n(row.data() + i / kernels::kBlockSlots * head_dim, head_dim,
                block.data() + i * pitch);
  }
  return block;
}

ZeroBlocks::ZeroBlocks(const LsLmConfig& config, const LsLmWeights& weights, kernels::DType blocks)
    : weights_(weights),
      layout_(blocks, config.head_dim(), config.head_dim(), config.heads),
      block_bytes_(layout_.k_block_bytes() * static_cast<size_t>(config.heads)) {
  if (!weights.layers.empty() && weights.layers[0].zero_blocks[0].data() != nullptr) return;
  data_ = Scratch(block_bytes_ * kLsZeroParts * weights.zero.size());
  for (size_t layer = 0; layer < weights.zero.size(); ++layer) {
    for (int part = 0; part < kLsZeroParts; ++part) {
      const bool key = part == kLsWindowKey || part == kLsSegmentKey;
      const std::vector<float>& row = weights.zero[layer][static_cast<size_t>(part)];
      for (int head = 0; head < config.heads; ++head) {
        std::byte* block = data_.data() +
                           (layer * kLsZeroParts + static_cast<size_t>(part)) * block_bytes_ +
                           (key ? layout_.KBlock(0, head) : layout_.VBlock(0, head));
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
    }
  }
}

const void* ZeroBlocks::Block(int layer, LsZeroPart part) const {
  if (data_.data() == nullptr) {
    return weights_.layers[static_cast<size_t>(layer)].zero_blocks[part].data();
  }
  return data_.data() + static_cast<size_t>(layer * kLsZeroParts + part) * block_bytes_;
}

kernels::Source ZeroBlocks::Of(kernels::ScheduleSource source, int layer,
                               const int32_t* zeros) const {
  const bool window = source == kernels::ScheduleSource::kConstantWindow;
  kernels::Source made;
  made.k = Block(layer, window ? kLsWindowKey : kLsSegmentKey);
  made.v = Block(layer, window ? kLsWindowValue : kLsSegmentValue);
  made.dtype = layout_.dtype();
  made.layout = kernels::Layout::kPaged;
  made.kv_heads = layout_.kv_heads();
  made.block_table = made.seq_offset = zeros;
  return made;
}

}  // namespace longview::models
