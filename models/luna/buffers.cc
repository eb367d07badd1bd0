#include "models/luna/buffers.h"

#include <algorithm>
#include <cmath>

#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

kernels::Call HeadsCall(const LunaContext& context, int heads) {
  const int dim = context.config->width / heads;
  kernels::Call call;
  call.dtype = SpanType(context.compute);
  call.q_row_stride = call.out_row_stride = context.config->width;
  call.q_head_stride = call.out_head_stride = dim;
  call.Dk = call.Dv = dim;
  call.H = heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  return call;
}

// Keys at `key` of rows of `row` elements, values behind them, or the same where tied.
kernels::Source KeysAndValues(const LunaContext& context, int heads, std::byte* key, int64_t row) {
  const int64_t width = context.config->width;
  std::byte* value = context.config->tied_kv ? key : Column(key, width, context.compute);
  return RowsSource(key, value, context.compute, row, width / heads);
}

}  // namespace

kernels::Call LunaPackCall(const LunaContext& context, const LunaBuffers& buffers,
                           std::vector<kernels::Source>& sources) {
  const LunaConfig& config = *context.config;
  const int64_t row = (config.tied_kv ? 2 : 3) * int64_t{config.width};
  sources = {KeysAndValues(context, config.pack_heads,
                           Column(buffers.projections, config.width, context.compute), row)};
  kernels::Call call = HeadsCall(context, config.pack_heads);
  call.q = buffers.pack_queries;
  call.out = buffers.packed;
  call.sources = sources;
  return call;
}

kernels::Call LunaUnpackCall(const LunaContext& context, const LunaBuffers& buffers, bool wanted,
                             std::vector<kernels::Source>& sources) {
  const LunaConfig& config = *context.config;
  const int64_t row = (config.tied_kv ? 1 : 2) * int64_t{config.width};
  sources = {KeysAndValues(context, config.heads, buffers.unpack_keys, row)};
  kernels::Call call = HeadsCall(context, config.heads);
  call.q = wanted ? buffers.queries : buffers.projections;
  if (!wanted) call.q_row_stride = (config.tied_kv ? 2 : 3) * int64_t{config.width};
  call.out = buffers.z;
  call.sources = sources;
  return call;
}

LunaSizes LunaSizesOf(const LunaContext& context, const RaggedBatch& batch, const LunaPlan& plan) {
  LunaSizes sizes = {batch.rows(), plan.projected_rows(), plan.wanted(), 0};
  const int threads = context.pool->threads();
  const LunaBuffers none;
  std::vector<kernels::Source> sources;
  const auto include = [&](const kernels::Plan& attention, const kernels::Call& call) {
    if (attention.items.empty()) return;
    sizes.workspace =
        std::max(sizes.workspace, Measure(attention, call, context.isa).total(threads));
  };
  include(plan.pack, LunaPackCall(context, none, sources));
  include(plan.unpack, LunaUnpackCall(context, none, false, sources));
  include(plan.unpack_wanted, LunaUnpackCall(context, none, true, sources));
  return sizes;
}

LunaBuffers CarveLunaBuffers(const LunaContext& context, const LunaSizes& sizes, Carver& carver) {
  const LunaConfig& config = *context.config;
  const int64_t width = config.width;
  const int64_t element = ElementBytes(context.compute);
  const bool own_input = HasOwnInput(context);
  const auto take = [&](int64_t rows, int64_t columns) {
    return carver.TakeBytes(static_cast<size_t>(rows * columns * element));
  };
  const int64_t rows = sizes.rows + kPanelRows, projected = sizes.projected_rows + kPanelRows;
  LunaBuffers b;
  b.x = carver.Take<float>(rows * width);
  b.input = own_input ? take(rows, width) : reinterpret_cast<std::byte*>(b.x);
  b.projections = take(sizes.rows, (config.tied_kv ? 2 : 3) * width);
  b.queries = take(sizes.wanted, width);
  b.z = take(rows, width);
  b.p = carver.Take<float>(projected * width);
  b.p_input = own_input ? take(projected, width) : reinterpret_cast<std::byte*>(b.p);
  b.pack_queries = take(sizes.projected_rows, width);
  b.packed = take(projected, width);
  b.unpack_keys = take(sizes.projected_rows, (config.tied_kv ? 1 : 2) * width);
  b.thread_rows = carver.Take<float>(2 * width * context.pool->threads());
  b.workspace = carver.TakeBytes(sizes.workspace);
  return b;
}

}  // namespace longview::models
