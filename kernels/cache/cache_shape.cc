#include "kernels/cache/cache_shape.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/check.h"
#include "kernels/cache/block_pool.h"
#include "kernels/pool/segment_pool.h"

namespace longview::kernels {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

size_t RowsBytes(int columns, DType dtype) {
  return static_cast<size_t>(kBlockSlots * CeilDiv(columns, 8) * 8) * SizeOf(dtype);
}

}  // namespace

int32_t CacheShape::prefill_alignment() const {
  int32_t tokens = kBlockSlots;
  for (const StripShape& strip : strips) tokens = std::lcm(tokens, strip.segment);
  return tokens;
}

int64_t CacheShape::Slots(int strip, int64_t tokens) const {
  return tokens / strips[strip].segment * strips[strip].rank;
}

int64_t CacheShape::MaxBlocks(int strip) const {
  const int64_t keep = strips[strip].keep;
  if (keep == 0) return INT64_MAX;
  // Slots between the end of a prefix to be cached and what may have been appended since.
  const int64_t slots = Slots(strip, prefill_alignment());
  const int64_t behind =
      slots % kBlockSlots == 0 ? slots / kBlockSlots : 1 + CeilDiv(slots, kBlockSlots);
  return CeilDiv(keep - 1, kBlockSlots) + std::max<int64_t>(2, behind);
}

int64_t CacheShape::Blocks(int strip, int64_t tokens) const {
  return std::min(CeilDiv(Slots(strip, tokens), kBlockSlots), MaxBlocks(strip));
}

size_t CacheShape::KeyBytes() const {
  return form == BlockForm::kPanels ? layout().k_block_bytes() : RowsBytes(Dk, dtype);
}

size_t CacheShape::ValueBytes() const {
  return form == BlockForm::kPanels ? layout().v_block_bytes() : RowsBytes(Dv, dtype);
}

int64_t CacheShape::BlockBytes() const {
  return static_cast<int64_t>(layers) * kv_heads * static_cast<int64_t>(KeyBytes() + ValueBytes());
}

int64_t CacheShape::StateBytes() const {
  if (pool_columns == 0) return 0;
  return static_cast<int64_t>(
      AlignUp(layers * AlignUp(PoolStateBytes(pool_columns, pool_widths)), BlockPool::kPage));
}

int64_t CacheShape::SequenceBytes(int64_t shared, int64_t longest, int sequences) const {
  KERNEL_CHECK(0 <= shared && shared <= longest && sequences >= 1);
  int64_t blocks = 0;
  for (int i = 0; i < static_cast<int>(strips.size()); ++i) {
    if (Slots(i, longest) == Slots(i, shared)) {
      blocks += Blocks(i, shared);
      continue;
    }
    // A block that was full when the forks parted is there once, any later one once per fork.
    // While the window slides each fork gives up one old block for each new one: the old ones are
    // freed only when the last fork has passed them.
    const int64_t most = MaxBlocks(i);
    const int64_t full = Slots(i, shared) / kBlockSlots;
    const int64_t own = std::min(most, CeilDiv(Slots(i, longest), kBlockSlots) - full);
    const int64_t sliding = most == INT64_MAX ? most : most + (sequences - 1) * own;
    blocks += std::min(full + sequences * own, sliding);
  }
  const int64_t states = longest > shared ? sequences : std::min<int64_t>(1, longest);
  return blocks * BlockBytes() + states * StateBytes();
}

int64_t CacheShape::StepBytes(int64_t prefill_tokens, int sequences) const {
  return (prefill_tokens / kBlockSlots + sequences + 1) * BlockBytes();
}

int64_t CacheShape::FirstSlotAt(int strip, int64_t tokens) const {
  const int32_t keep = strips[strip].keep;
  return keep == 0 ? 0 : std::max<int64_t>(0, Slots(strip, tokens + 1) - keep);
}

}  // namespace longview::kernels
