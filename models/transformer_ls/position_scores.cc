#include "models/transformer_ls/position_scores.h"

#include <algorithm>
#include <cmath>

#include "models/parallel.h"

namespace longview::models {
namespace {

int64_t Units(int64_t entries) { return (entries + kernels::kRowUnit - 1) / kernels::kRowUnit; }

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
  const kernels::SchedulePattern pattern = config.pattern();
  const LsGroup& group = layout.groups[2];
  const int64_t width = config.width, dim = config.head_dim(), runs = group.runs;
  const kernels::Isa isa = kernels::BestFloatIsa();
  float* const window_queries = buffers.score_queries;
  float* const segment_queries = window_queries + runs * width;
  PrepareQueries(context, group, buffers, context.weights->positions[layer].distance_add.data(),
                 window_queries);
  PrepareQueries(context, group, buffers, buffers.zeros, segment_queries);

  // One unit of one head's table, from entry `at` on, for runs [begin, end).
  const auto score = [&](const kernels::RowWeight& table, int64_t at, int64_t last,
                         const float* queries, int64_t begin, int64_t end, float* out,
                         int64_t stride) {
    MultiplyRows(RowWeightPart(table, at, std::min(at + kernels::kRowUnit, last)),
                 queries + begin * width, width, end - begin, out + begin * stride, stride,
                 kernels::SerialFor(), isa);
  };
  const int64_t window_units = Units(config.window), longest = layout.segment_stride;
  const int64_t units = window_units + Units(longest);
  ParallelRanges(*context.pool, config.heads * units, 4, [&](long from, long to) {
    for (long unit = from; unit < to; ++unit) {
      const auto head = static_cast<int>(unit / units);
      const int64_t place = unit % units;
      if (place < window_units) {
        const int64_t first = place * kernels::kRowUnit;
        score(context.tables->WindowWeight(layer, head), first, config.window,
              window_queries + head * dim, 0, runs,
              buffers.window_scores + head * layout.window_entries + first, config.window);
        continue;
      }
      const int64_t first = (place - window_units) * kernels::kRowUnit;
      const int64_t at = first % RelativeTables::kPackedIds;
      const kernels::RowWeight table = context.tables->SegmentWeight(layer, head, first - at);
      float* const out = buffers.segment_scores + head * layout.segment_entries + first;
      const auto reads = [&](int64_t run) {
        return pattern.SegmentIds(layout.runs[group.run0 + run].start) > first;
      };
      for (int64_t begin = 0, end = 0; begin < runs; begin = end) {
        for (end = begin + 1; end < runs && reads(end) == reads(begin);) ++end;
        if (!reads(begin)) continue;
        score(table, at, at + longest - first, segment_queries + head * dim, begin, end, out,
              longest);
      }
    }
  });
}

}  // namespace longview::models
