#include "models/transformer_ls/pass_buffers.h"

#include <algorithm>
#include <cmath>

#include "models/transformer_ls/cache_layout.h"

namespace longview::models {
namespace {

using kernels::ScheduleSource;

kernels::Source FreshSource(const LsContext& context, const LsBuffers& buffers) {
  kernels::Source source;
  source.k = buffers.keys;
  source.v = buffers.values;
  source.dtype = SpanType(context.compute);
  source.k_row_stride = source.v_row_stride = context.config->width;
  source.k_head_stride = source.v_head_stride = context.config->head_dim();
  return source;
}

// Of the kind alone, for measuring.
kernels::Source PagedKind(const LsContext& context) {
  kernels::Source source;
  source.dtype = context.block_type();
  source.layout = kernels::Layout::kPaged;
  source.kv_heads = context.config->heads;
  return source;
}

kernels::Table ScoreTable(const float* scores, int64_t entries) {
  kernels::Table table;
  table.data = scores;
  table.entries = static_cast<int32_t>(entries);
  table.head_stride = entries;
  return table;
}

}  // namespace

size_t PieceStateBytes(const LsLmConfig& config) {
  return kernels::AlignUp(kernels::PoolStateBytes(PoolColumns(config), PoolWidths(config)));
}

LsBuffers CarveLsBuffers(const LsContext& context, const LsPassLayout& layout, size_t workspace,
                         Carver& carver) {
  const LsLmConfig& config = *context.config;
  const int64_t width = config.width, rows = layout.rows;
  const int64_t element = ElementBytes(context.compute);
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * width * element));
  };
  const bool fp32 = context.compute == Compute::kFp32;
  const bool early = config.schedule == LsSchedule::kBlocks;
  const int64_t pages = layout.closed_segments() * config.rank;
  const int64_t tokens = layout.groups[2].runs;
  LsBuffers b;
  b.zeros = carver.Take<float>(width);
  b.x = carver.Take<float>((rows + kPanelRows) * width);
  b.input = fp32 ? reinterpret_cast<std::byte*>(b.x) : take(rows + kPanelRows);
  b.qkv = take(3 * rows);
  b.keys = take(rows);
  b.values = take(rows);
  b.scores = carver.Take<float>(rows * config.columns());
  b.z = take(rows + kPanelRows);
  b.states = carver.TakeBytes(layout.pieces.size() * PieceStateBytes(config));
  b.means = carver.Take<float>(2 * width * config.rank * context.pool->threads());
  b.page_keys = carver.Take<float>(pages * width);
  b.page_values = carver.Take<float>(pages * width);
  b.hidden = early && pages > 0 ? take(pages + kPanelRows) : nullptr;
  b.early_keys = carver.Take<float>(early ? pages * width : 0);
  b.early_values = carver.Take<float>(early ? pages * width : 0);
  b.score_queries = carver.Take<float>(2 * tokens * width);
  b.window_scores = carver.Take<float>(config.heads * layout.window_entries);
  b.segment_scores = carver.Take<float>(config.heads * layout.segment_entries);
  b.logit_input = take(layout.wanted > 0 ? layout.wanted + kPanelRows : 0);
  b.workspace = carver.TakeBytes(workspace);
  if (tokens > 0) {
    const int64_t widest =
        std::max<int64_t>({3 * width + config.columns(), config.intermediate, config.vocab});
    for (std::byte*& products : b.products) {
      products = carver.TakeBytes(RowLinear::ScratchBytes(widest, widest, context.compute));
    }
  }
  return b;
}

void MakeCall(const LsContext& context, int layer, const LsPassLayout& layout, const LsGroup& group,
              const LsBuffers& buffers, const kernels::CacheStep* step,
              std::span<const std::vector<int32_t>> absolute, const std::vector<int32_t>& zeros,
              LsCall& result) {
  const LsLmConfig& config = *context.config;
  result.sources.clear();
  for (const ScheduleSource source : group.sources) {
    if (source == ScheduleSource::kFresh) {
      result.sources.push_back(FreshSource(context, buffers));
    } else if (step == nullptr) {
      result.sources.push_back(PagedKind(context));
    } else if (source == ScheduleSource::kConstantSegments) {
      result.sources.push_back(context.zero->Segments(layer, zeros));
    } else if (source == ScheduleSource::kConstantWindow) {
      result.sources.push_back(context.zero->Window(layer, zeros));
    } else {
      const int strip = StripOf(source);
      result.sources.push_back(
          context.cache->PagedSource(strip, layer, step->table(group.group, strip)));
      result.sources.back().seq_offset = absolute[strip].data();
    }
    if (OfWindow(source))
      result.sources.back().q_add = context.weights->layers[layer].window_add.data();
  }
  if (step == nullptr) {
    // Tables may grow in another thread; what is measured does not depend on them.
    result.tables.assign(2, kernels::Table());
  } else if (group.group == kernels::CacheStep::kDecode) {
    result.tables = {ScoreTable(buffers.window_scores, layout.window_entries),
                     ScoreTable(buffers.segment_scores, layout.segment_entries)};
  } else {
    result.tables = {context.tables->Window(layer), context.tables->Segments(layer)};
  }
  kernels::Call& call = result.call;
  call.q = buffers.qkv;
  call.out = buffers.z;
  call.dtype = SpanType(context.compute);
  call.q_head_stride = call.out_head_stride = config.head_dim();
  call.q_row_stride = 3 * config.width;
  call.out_row_stride = config.width;
  call.Dk = call.Dv = config.head_dim();
  call.H = config.heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim()));
  call.sources = result.sources;
  call.tables = result.tables;
}

size_t AttentionWorkspace(const LsContext& context, const LsPassLayout& layout) {
  size_t most = 0;
  LsCall call;
  for (const LsGroup& group : layout.groups) {
    if (group.runs == 0) continue;
    MakeCall(context, 0, layout, group, LsBuffers(), nullptr, {}, {}, call);
    most =
        std::max(most, Measure(group.plan, call.call, context.isa).total(context.pool->threads()));
  }
  return most;
}

}  // namespace longview::models
