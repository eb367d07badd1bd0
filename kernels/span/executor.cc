#include "kernels/span/executor.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "kernels/base/bfloat16.h"
#include "kernels/base/check.h"
#include "kernels/span/tile_kernel.h"

namespace longview::kernels {
namespace {

bool TakesDType(Isa isa, DType dtype) {
  return isa < Isa::kAvx512Bf16 || dtype == DType::kBFloat16;
}

// Key heads that a fresh source's panels hold.
struct HeadRange {
  int first;
  int count;
};

HeadRange KvHeads(const SlotMap& map, int kv_group) {
  const int first = map.head0 / kv_group;
  return {first, (map.head0 + map.heads - 1) / kv_group - first + 1};
}

bool NeedsPacking(const Call& call, size_t source, const TileKernel& kernel) {
  return call.sources[source].layout == Layout::kRows && kernel.isa != Isa::kScalar;
}

// Bytes of shared workspace for the panels of a fresh source.
struct SharedSizes {
  size_t k = 0;
  size_t v = 0;
};

SharedSizes PackedBytes(const Plan& plan, const Call& call, size_t source, DType panels) {
  const SlotMap& map = plan.sources[source];
  if (map.slots == 0 || map.heads == 0) return {};
  const int heads = KvHeads(map, call.kv_group).count;
  const KvLayout layout(panels, call.Dk, call.Dv, heads);
  const int64_t blocks = map.slots / kBlockSlots;
  return {layout.KBlock(blocks, 0), layout.VBlock(blocks, 0)};
}

size_t SharedBytes(const Plan& plan, const Call& call, const TileKernel& kernel) {
  size_t bytes = 0;
  for (size_t s = 0; s < call.sources.size(); ++s) {
    if (!NeedsPacking(call, s, kernel)) continue;
    const SharedSizes sizes = PackedBytes(plan, call, s, kernel.panels);
    bytes += sizes.k + sizes.v;
  }
  if (plan.partial_slots > 0) bytes += PartialBytes(plan.partial_slots, call.Dv);
  return bytes;
}

// The view of one source; panels of fresh rows are taken from *shared.
PanelSource ViewSource(const Plan& plan, const Call& call, size_t index, const TileKernel& kernel,
                       std::byte** shared) {
  const Source& source = call.sources[index];
  const SlotMap& map = plan.sources[index];
  PanelSource view;
  view.q_add = source.q_add;
  if (map.valid0 >= 0) view.valid = plan.valid.data() + map.valid0;
  if (source.layout == Layout::kRows) {
    if (kernel.isa == Isa::kScalar) return view;
    const KvLayout layout(kernel.panels, call.Dk, call.Dv, 1);
    const SharedSizes sizes = PackedBytes(plan, call, index, kernel.panels);
    const HeadRange heads = KvHeads(map, call.kv_group);
    view.k = *shared;
    view.v = *shared + sizes.k;
    *shared += sizes.k + sizes.v;
    view.k_block_bytes = layout.k_block_bytes();
    view.v_block_bytes = layout.v_block_bytes();
    view.kv_head0 = heads.first;
    view.kv_heads = heads.count;
    return view;
  }
  const KvLayout layout(source.dtype, call.Dk, call.Dv, source.kv_heads);
  view.k = static_cast<const std::byte*>(source.k);
  view.v = static_cast<const std::byte*>(source.v);
  view.k_block_bytes = layout.k_block_bytes();
  view.v_block_bytes = layout.v_block_bytes();
  view.kv_heads = source.kv_heads;
  if (source.layout == Layout::kPaged) {
    view.block_table = source.block_table;
    view.seq_offset = source.seq_offset;
  }
  return view;
}

const void* Column(const void* data, DType dtype, int64_t elements) {
  return static_cast<const std::byte*>(data) + elements * static_cast<int64_t>(SizeOf(dtype));
}

// Packs block `block` of a fresh source, all heads.
void PackSourceBlock(const Plan& plan, const Call& call, size_t index, int64_t block,
                     const TileKernel& kernel, const PanelSource& view) {
  const Source& source = call.sources[index];
  std::array<int32_t, kBlockSlots> rows;
  for (int i = 0; i < kBlockSlots; ++i) {
    rows[i] = static_cast<int32_t>(
        SlotRow(plan, plan.sources[index], static_cast<int32_t>(block * kBlockSlots + i)));
  }
  const KvLayout layout(kernel.panels, call.Dk, call.Dv, view.kv_heads);
  for (int h = view.kv_head0; h < view.kv_head0 + view.kv_heads; ++h) {
    PackBlock request;
    request.layout = &layout;
    request.k = Column(source.k, source.dtype, h * source.k_head_stride);
    request.v = Column(source.v, source.dtype, h * source.v_head_stride);
    request.from = source.dtype;
    request.k_row_stride = source.k_row_stride;
    request.v_row_stride = source.v_row_stride;
    request.rows = rows.data();
    request.k_block = const_cast<std::byte*>(view.K(0, block, h));
    request.v_block = const_cast<std::byte*>(view.V(0, block, h));
    (kernel.pack != nullptr ? kernel.pack : PackBlockPortable)(request);
  }
}

void PackFreshSources(const Plan& plan, const Call& call, const TileKernel& kernel,
                      const PanelSource* views, const ParallelFor& pool) {
  int64_t total = 0;
  for (size_t s = 0; s < call.sources.size(); ++s) {
    if (NeedsPacking(call, s, kernel)) total += plan.sources[s].slots / kBlockSlots;
  }
  if (total == 0) return;
  std::atomic<int64_t> next{0};
  RunOnThreads(pool, [&](int) {
    for (int64_t i = next++; i < total; i = next++) {
      int64_t block = i;
      size_t s = 0;
      for (;; ++s) {
        if (!NeedsPacking(call, s, kernel)) continue;
        const int64_t blocks = plan.sources[s].slots / kBlockSlots;
        if (block < blocks) break;
        block -= blocks;
      }
      if (plan.sources[s].heads > 0) PackSourceBlock(plan, call, s, block, kernel, views[s]);
    }
  });
}

// Items of one parallel loop: some tens of milliseconds of them, as callers may let others through
// between two loops. Long enough that what threads wait for each other at its end does not count.
size_t ItemsOfALoop(const Plan& plan, int threads) {
  constexpr double kTriples = 8e6;  // Per thread.
  const double wanted = kTriples * threads;
  const auto executed = static_cast<double>(plan.executed);
  const size_t all = plan.items.size();
  if (executed <= 2 * wanted) return all;
  const auto share = static_cast<size_t>(static_cast<double>(all) * wanted / executed);
  return std::max(share, static_cast<size_t>(threads));
}

void RunItems(const TileJob& job, const TileKernel& kernel, const Workspace& workspace,
              const ParallelFor& pool) {
  const std::vector<Item>& items = job.plan->items;
  const size_t each = ItemsOfALoop(*job.plan, pool.threads());
  for (size_t first = 0; first < items.size(); first += each) {
    const size_t end = std::min(first + each, items.size());
    std::atomic<size_t> next{first};
    RunOnThreads(pool, [&](int thread) {
      std::byte* scratch = workspace.thread_base + thread * workspace.thread_stride;
      if (kernel.enter != nullptr) kernel.enter();
      for (size_t i = next++; i < end; i = next++) kernel.run(job, items[i], scratch);
      if (kernel.leave != nullptr) kernel.leave();
    });
  }
}

void MergeOne(const TileJob& job, const Merge& merge) {
  const Call& call = *job.call;
  const PartialStates& states = job.partials;
  const int64_t first = merge.part0;
  float* o = states.o + first * states.o_stride;
  // Ascending order, whichever thread finished first: the last bit depends on it (softmax_state.h).
  for (int p = 1; p < merge.parts; ++p) {
    const int64_t slot = first + static_cast<int64_t>(p) * merge.stride;
    MergeState(&states.m[first], &states.l[first], o, states.m[slot], states.l[slot],
               states.o + slot * states.o_stride, call.Dv);
  }
  FinishState(states.l[first], o, call.Dv);
  const int64_t base = merge.row * call.out_row_stride + merge.head * call.out_head_stride;
  for (int d = 0; d < call.Dv; ++d) {
    if (call.dtype == DType::kFloat32) {
      static_cast<float*>(call.out)[base + d] = o[d];
    } else {
      static_cast<uint16_t*>(call.out)[base + d] = FloatToBFloat16(o[d]);
    }
  }
}

void MergePartials(const TileJob& job, const ParallelFor& pool) {
  const std::vector<Merge>& merges = job.plan->merges;
  if (merges.empty()) return;
  constexpr size_t kChunk = 16;
  std::atomic<size_t> next{0};
  RunOnThreads(pool, [&](int) {
    for (size_t i = next.fetch_add(kChunk); i < merges.size(); i = next.fetch_add(kChunk)) {
      const size_t end = std::min(i + kChunk, merges.size());
      for (size_t j = i; j < end; ++j) MergeOne(job, merges[j]);
    }
  });
}

}  // namespace

int TileRows(Isa isa) { return isa == Isa::kAmxBf16 ? 64 : 48; }

Isa EffectiveIsa(Isa isa, DType dtype) {
  for (int i = static_cast<int>(isa); i > 0; --i) {
    const Isa candidate = static_cast<Isa>(i);
    if (TakesDType(candidate, dtype) && FindTileKernel(candidate) != nullptr &&
        IsaSupported(candidate)) {
      return candidate;
    }
  }
  return Isa::kScalar;
}

DType PanelDType(Isa isa) { return isa >= Isa::kAvx512Bf16 ? DType::kBFloat16 : DType::kFloat32; }

void PackBlockPortable(const PackBlock& request) {
  const KvLayout& layout = *request.layout;
  layout.ClearK(request.k_block);
  layout.ClearV(request.v_block);
  for (int i = 0; i < kBlockSlots; ++i) {
    const int64_t row = request.rows[i];
    if (row < 0) continue;
    layout.WriteK(request.k_block, i, Column(request.k, request.from, row * request.k_row_stride),
                  request.from);
    layout.WriteV(request.v_block, i, Column(request.v, request.from, row * request.v_row_stride),
                  request.from);
  }
}

WorkspaceBytes MeasureWith(const TileKernel& kernel, const Plan& plan, const Call& call) {
  KERNEL_CHECK(plan.sources.size() == call.sources.size());
  return {SharedBytes(plan, call, kernel), kernel.scratch_bytes(plan, call)};
}

void RunPlanWith(const TileKernel& kernel, const Plan& plan, const Call& call,
                 const Workspace& workspace, const ParallelFor& pool) {
  CheckPlan(plan, call, kernel.isa);
  std::array<PanelSource, kMaxSources> views;
  std::byte* shared = workspace.shared;
  for (size_t s = 0; s < call.sources.size(); ++s) {
    views[s] = ViewSource(plan, call, s, kernel, &shared);
  }
  TileJob job{&plan, &call, views.data(), {}, pool.threads()};
  if (plan.partial_slots > 0) job.partials = CarvePartials(shared, plan.partial_slots, call.Dv);
  PackFreshSources(plan, call, kernel, views.data(), pool);
  RunItems(job, kernel, workspace, pool);
  MergePartials(job, pool);
}

WorkspaceBytes Measure(const Plan& plan, const Call& call, Isa isa) {
  return MeasureWith(*FindTileKernel(EffectiveIsa(isa, call.dtype)), plan, call);
}

void RunPlan(const Plan& plan, const Call& call, const Workspace& workspace,
             const ParallelFor& pool, Isa isa) {
  RunPlanWith(*FindTileKernel(EffectiveIsa(isa, call.dtype)), plan, call, workspace, pool);
}

}  // namespace longview::kernels
