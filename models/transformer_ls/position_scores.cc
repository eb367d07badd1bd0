#include "models/transformer_ls/position_scores.h"

#include <algorithm>
#include <cmath>

#include "models/parallel.h"

namespace longview::models {
namespace {

constexpr int64_t kEntries = 64;  // Of a unit of work: they stay in cache for all tokens.

int64_t Units(int64_t entries) { return (entries + kEntries - 1) / kEntries; }

// out = scale * (q + add), fp32; add [d].
void PrepareQueries(const LsContext& context, const LsGroup& group, const LsBuffers& buffers,
                    const float* add, float* out) {
  const int64_t width = context.config->width;
  const float scale = 1.0f / std::sqrt(static_cast<float>(context.config->head_dim()));
  const RowKernels& rows = ChooseRowKernels(context.compute);
  for (int64_t i = 0; i < group.rows; ++i) {
    rows.bias_widen(buffers.qkv + (group.row0 + i) * 3 * width * ElementBytes(context.compute), add,
                    width, out + i * width);
  }
  for (int64_t i = 0; i < group.rows * width; ++i) out[i] *= scale;
}

}  // namespace

void ScorePositions(const LsContext& context, int layer, const LsPassLayout& layout,
                    const LsBuffers& buffers) {
  const LsLmConfig& config = *context.config;
  const LsGroup& group = layout.groups[2];
  const int64_t width = config.width, dim = config.head_dim(), runs = group.runs;
  const RowKernels& rows = ChooseRowKernels(context.compute);
  float* const window_queries = buffers.score_queries;
  float* const segment_queries = window_queries + runs * width;
  PrepareQueries(context, group, buffers, context.weights->layers[layer].distance_add.data(),
                 window_queries);
  PrepareQueries(context, group, buffers, buffers.zeros, segment_queries);

  const auto score = [&](const kernels::Table& table, int64_t head, int64_t first, int64_t count,
                         const float* query, float* out) {
    const int64_t at = head * table.head_stride + first * table.entry_stride;
    rows.dot_rows(query + head * dim,
                  static_cast<const std::byte*>(table.data) + at * ElementBytes(context.compute),
                  table.entry_stride, count, dim, out + first);
  };
  const kernels::Table window = context.tables->Window(layer);
  const kernels::Table segments = context.tables->Segments(layer);
  int64_t longest = 0;
  for (int64_t i = 0; i < runs; ++i) {
    longest = std::max(longest, SegmentIds(config, layout.runs[group.run0 + i].start));
  }
  const int64_t window_units = Units(config.window);
  const int64_t units = window_units + Units(longest);
  ParallelRanges(*context.pool, config.heads * units, 4, [&](long begin, long end) {
    for (long unit = begin; unit < end; ++unit) {
      const int64_t head = unit / units, place = unit % units;
      const bool of_window = place < window_units;
      const int64_t first = (of_window ? place : place - window_units) * kEntries;
      for (int64_t i = 0; i < runs; ++i) {
        const int64_t t = layout.runs[group.run0 + i].start;
        const int64_t entries = of_window ? config.window : SegmentIds(config, t);
        const int64_t count = std::min(kEntries, entries - first);
        if (count <= 0) continue;
        if (of_window) {
          score(window, head, first, count, window_queries + i * width,
                buffers.window_scores + head * layout.window_entries + layout.window_entry[i]);
        } else {
          score(segments, head, first, count, segment_queries + i * width,
                buffers.segment_scores + head * layout.segment_entries + layout.segment_entry[i]);
        }
      }
    }
  });
}

}  // namespace longview::models
