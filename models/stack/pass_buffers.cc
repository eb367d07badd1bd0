#include "models/stack/pass_buffers.h"

#include <algorithm>
#include <cmath>

namespace longview::models {
namespace {

using kernels::CacheStep;

// A source by its kind alone, for measuring.
kernels::Source PagedKind(const StackContext& context) {
  kernels::Source source;
  source.dtype = context.block_type();
  source.layout = kernels::Layout::kPaged;
  source.kv_heads = context.config->heads;
  return source;
}

kernels::Call HeadsCall(const StackContext& context, const StackBuffers& buffers,
                        int64_t query_stride) {
  const StackConfig& config = *context.config;
  kernels::Call call;
  call.q = buffers.qkv;
  call.out = buffers.z;
  call.dtype = SpanType(context.compute);
  call.q_head_stride = call.out_head_stride = config.head_dim();
  call.q_row_stride = query_stride;
  call.out_row_stride = config.width;
  call.Dk = call.Dv = config.head_dim();
  call.H = config.heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim()));
  return call;
}

}  // namespace

StackBuffers CarveStackBuffers(const StackContext& context, const StackPassLayout& layout,
                               size_t workspace, Carver& carver) {
  const int64_t width = context.config->width, rows = layout.rows;
  const int64_t element = ElementBytes(context.compute);
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * width * element));
  };
  StackBuffers b;
  b.x = carver.Take<float>((rows + kPanelRows) * width);
  b.input = context.compute == Compute::kFp32 ? reinterpret_cast<std::byte*>(b.x)
                                              : take(rows + kPanelRows);
  b.qkv = take(3 * rows);
  b.z = take(rows + kPanelRows);
  b.logit_input = take(layout.wanted > 0 ? layout.wanted + kPanelRows : 0);
  if (layout.rows > layout.panel_rows) {
    const StackConfig& config = *context.config;
    const int64_t widest = std::max<int64_t>({3 * width, config.intermediate, config.vocab});
    const int64_t longest = std::max<int64_t>(width, config.intermediate);
    b.products = carver.TakeBytes(RowLinear::ScratchBytes(widest, longest, context.compute));
    b.expanded = carver.TakeBytes(
        static_cast<size_t>((rows - layout.panel_rows) * config.intermediate * element));
  }
  b.zeros = carver.Take<float>(width);
  b.embedding_rows = carver.Take<float>(2 * width * context.pool->threads());
  b.workspace = carver.TakeBytes(workspace);
  return b;
}

void MakeSelfCall(const StackContext& context, int layer, const StackGroup& group,
                  const StackBuffers& buffers, const kernels::CacheStep* step,
                  std::span<const int32_t> offsets, StackCall& result) {
  const int64_t width = context.config->width;
  result.call = HeadsCall(context, buffers, 3 * width);
  result.sources = {step == nullptr
                        ? PagedKind(context)
                        : context.cache->PagedSource(0, layer, step->table(group.group, 0))};
  result.sources[0].seq_offset = offsets.data();
  if (group.group == CacheStep::kPrefill) {
    result.sources.push_back(RowsSource(Column(buffers.qkv, width, context.compute),
                                        Column(buffers.qkv, 2 * width, context.compute),
                                        context.compute, 3 * width, context.config->head_dim()));
  }
  result.tables.clear();
  if (const auto table = context.tables->Of(layer)) result.tables.push_back(*table);
  result.call.sources = result.sources;
  result.call.tables = result.tables;
}

void MakeCrossCall(const StackContext& context, int layer, const StackBuffers& buffers,
                   const kernels::CacheTable* table, StackCall& result) {
  result.call = HeadsCall(context, buffers, context.config->width);
  result.sources = {table == nullptr ? PagedKind(context)
                                     : context.documents->PagedSource(0, layer, *table)};
  result.tables.clear();
  result.call.sources = result.sources;
}

size_t StackWorkspace(const StackContext& context, const StackPassLayout& layout) {
  size_t most = 0;
  StackCall call;
  const auto include = [&](const kernels::Plan& plan) {
    most = std::max(most, Measure(plan, call.call, context.isa).total(context.pool->threads()));
  };
  const StackBuffers none;
  for (const StackGroup& group : layout.groups) {
    for (const auto& [layer, plan] : group.plans) {
      MakeSelfCall(context, layer, group, none, nullptr, {}, call);
      include(plan);
    }
  }
  if (!layout.cross.items.empty()) {
    MakeCrossCall(context, 0, none, nullptr, call);
    include(layout.cross);
  }
  return most;
}

}  // namespace longview::models
