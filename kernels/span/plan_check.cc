#include "kernels/span/executor.h"

#include "kernels/base/check.h"

namespace longview::kernels {
namespace {

bool Within(int64_t begin, int64_t count, size_t size) {
  return begin >= 0 && count >= 0 && static_cast<size_t>(begin + count) <= size;
}

void CheckCall(const Call& call) {
  KERNEL_CHECK(call.Dk >= 1 && call.Dk <= kMaxHeadDim);
  KERNEL_CHECK(call.Dv >= 1 && call.Dv <= kMaxHeadDim);
  KERNEL_CHECK(call.H >= 1 && call.kv_group >= 1 && call.H % call.kv_group == 0);
  KERNEL_CHECK(call.sources.size() <= kMaxSources);
  KERNEL_CHECK(call.dtype != DType::kFloat16);
}

void CheckSource(const Plan& plan, const Call& call, size_t index, Isa isa) {
  const SlotMap& map = plan.sources[index];
  const Source& source = call.sources[index];
  KERNEL_CHECK(map.slots >= 0 && map.slots % kBlockSlots == 0);
  KERNEL_CHECK(Within(map.head0, map.heads, call.H));
  KERNEL_CHECK(map.valid0 < 0 || Within(map.valid0, map.slots / 64, plan.valid.size()));
  KERNEL_CHECK(Within(map.run0, map.runs, plan.runs.size()));
  if (source.layout == Layout::kRows) {
    KERNEL_CHECK(map.slots == 0 || (source.k != nullptr && source.v != nullptr));
    return;
  }
  KERNEL_CHECK(source.kv_heads * call.kv_group >= map.head0 + map.heads);
  KERNEL_CHECK(isa == Isa::kScalar || source.dtype == PanelDType(isa));
  if (source.layout == Layout::kPaged) {
    KERNEL_CHECK(map.valid0 < 0);
  }
}

void CheckSpan(const Plan& plan, const Call& call, const Tile& tile, const Span& span, Isa isa) {
  KERNEL_CHECK(Within(span.source, 1, call.sources.size()));
  const SlotMap& map = plan.sources[span.source];
  KERNEL_CHECK(span.keys >= 0 && span.key0 >= 0 && span.key_step >= 1);
  KERNEL_CHECK(span.key_step == 1 || isa == Isa::kScalar);
  const Source& source = call.sources[span.source];
  if (source.layout == Layout::kPaged) {
    KERNEL_CHECK(source.block_table != nullptr && source.seq_offset != nullptr);
  } else if (span.keys > 0) {
    KERNEL_CHECK(span.key0 + int64_t{span.keys - 1} * span.key_step < map.slots);
  }
  KERNEL_CHECK(tile.head0 >= map.head0 && tile.head0 + tile.heads <= map.head0 + map.heads);
  KERNEL_CHECK(span.interval < 0 || Within(span.interval, tile.rows, plan.intervals.size()));
  KERNEL_CHECK(span.holes == 0 || map.valid0 >= 0);
  if (span.bias < 0) return;
  KERNEL_CHECK(Within(span.bias, 1, plan.biases.size()));
  const Bias& bias = plan.biases[span.bias];
  KERNEL_CHECK(Within(bias.id, 1, call.tables.size()));
  KERNEL_CHECK(bias.row_div >= 1 && bias.row_phase >= 0);
  const Table& table = call.tables[bias.id];
  KERNEL_CHECK(bias.kind == kDotted || (table.dtype == DType::kFloat32 && table.entry_stride == 1));
}

}  // namespace

void CheckPlan(const Plan& plan, const Call& call, Isa isa) {
  CheckCall(call);
  KERNEL_CHECK(plan.sources.size() == call.sources.size());
  for (size_t s = 0; s < plan.sources.size(); ++s) CheckSource(plan, call, s, isa);
  for (const Tile& tile : plan.tiles) {
    KERNEL_CHECK(tile.rows >= 1 && tile.rows <= kMaxTileRows && tile.row0 >= 0);
    KERNEL_CHECK(tile.heads >= 1 && Within(tile.head0, tile.heads, call.H));
    KERNEL_CHECK(Within(tile.span0, tile.spans, plan.spans.size()));
    KERNEL_CHECK(tile.part < 0 ||
                 Within(tile.part, int64_t{tile.rows} * tile.heads, plan.partial_slots));
    for (int s = 0; s < tile.spans; ++s) {
      CheckSpan(plan, call, tile, plan.spans[tile.span0 + s], isa);
    }
  }
  for (const Merge& merge : plan.merges) {
    KERNEL_CHECK(merge.parts >= 1 && merge.part0 >= 0 && merge.stride >= 1);
    KERNEL_CHECK(merge.part0 + int64_t{merge.parts - 1} * merge.stride < plan.partial_slots);
    KERNEL_CHECK(Within(merge.head, 1, call.H) && merge.row >= 0);
  }
}

}  // namespace longview::kernels
