#include "models/vision/long_short_map.h"

#include <algorithm>
#include <array>

#include "models/ops/attend.h"
#include "models/ops/long_short.h"

namespace longview::models {
namespace {

// On the host queries, keys and values lie side by side. On a device they have memory of their own,
// but for what one product makes: that lies behind the queries, before `columns` of scores.
LongShortRows CarveProjections(const Backend& backend, int64_t count, int64_t width,
                               int64_t columns, bool one_product, Carver& carver) {
  const auto take = [&](int64_t of) {
    return backend.CarveRows(count, of, RowType::kCompute, Backend::Tail::kWritten, carver);
  };
  LongShortRows rows;
  if (!backend.on_device()) {
    const Rows all = take(3 * width);
    rows.q = all.Columns(0, width);
    rows.keys = rows.own_keys = all.Columns(width, width);
    rows.values = rows.own_values = all.Columns(2 * width, width);
    return rows;
  }
  if (one_product) {
    const Rows all = take(3 * width + columns);
    rows.q = all.Columns(0, width);
    rows.own_keys = all.Columns(width, width);
    rows.own_values = all.Columns(2 * width, width);
  } else {
    rows.q = take(width);
  }
  rows.keys = take(width);
  rows.values = take(width);
  return rows;
}

}  // namespace

LongShortLists StageLongShort(Backend& backend, const LongShortPlan& plan,
                              const kernels::Plan& tokens) {
  return {backend.Stage(tokens), backend.Stage(plan.class_rows),
          StageSegments(backend, plan.offsets, plan.in_map)};
}

LongShortMemory CarveLongShort(const Backend& backend, const ComputeContext& context,
                               const LongShortNeeds& needs, Carver& carver) {
  using Tail = Backend::Tail;
  const LongShortPattern& pattern = needs.pattern;
  const int64_t d = pattern.width, columns = pattern.columns();
  int64_t whole = 0, slice = 0, read = 0, large = 0, tokens = 0, images = 0;
  for (const LongShortBand& band : needs.bands) {
    if (band.is_large()) {
      slice = std::max(slice, band.map.rows(pattern));
      const int64_t beside = int64_t{2} * needs.beside * band.map.shapes[0].width;
      read = std::max(read, band.map.rows(pattern) + beside);
      large = std::max(large, band.rows);
      tokens = std::max(tokens, band.map.tokens);
    } else {
      whole = std::max(whole, band.rows);
      images = std::max(images, band.whole->images());
    }
  }
  // A product of their own writes past their end.
  const Tail tail = needs.one_product ? Tail::kNone : Tail::kWritten;
  const auto scores = [&](int64_t rows, bool wanted, Carver& from) {
    return backend.CarveRows(wanted ? rows : 0, columns, RowType::kFloat, tail, from);
  };
  LongShortMemory memory;
  memory.normed =
      backend.CarveRows(std::max(whole, read), d, RowType::kCompute, Tail::kPanel, carver);
  memory.rows =
      CarveProjections(backend, std::max(whole, slice), d, columns, needs.one_product, carver);
  memory.rows.scores = scores(whole, true, carver);
  memory.value_scores = scores(whole, needs.value_scores, carver);
  memory.landmarks =
      backend.CarveRows(images * pattern.ranks, 2 * d, RowType::kCompute, Tail::kNone, carver);
  if (large == 0) return memory;
  // Scores share memory with outputs: they are spent before attention writes its first row.
  Carver weights = carver;
  memory.outputs = backend.CarveRows(large, d, RowType::kCompute, Tail::kPanel, carver);
  memory.scores = scores(tokens, true, weights);
  memory.sliced_values = scores(tokens, needs.value_scores, weights);
  if (weights.used() > carver.used()) carver = weights;
  // Projections by one product take no scratch themselves.
  memory.in_scratch = needs.one_product;
  if (!memory.in_scratch) memory.sliced = CarveLargeMap(pattern, needs.bands, context, carver);
  return memory;
}

void AttendLongShort(Backend& backend, const LongShortPattern& pattern, const LongShortLists& lists,
                     int64_t band_rows, const LongShortMemory& memory,
                     const NormWeight* landmark_norm, std::span<const kernels::Table> tables) {
  const int64_t d = pattern.width;
  const Compute compute = backend.compute();
  LongShortRows rows = memory.rows;
  for (Rows* part : {&rows.q, &rows.keys, &rows.values, &rows.scores}) {
    *part = part->First(band_rows);
  }
  if (pattern.ranks > 0) {
    ops::Landmarks landmarks;
    landmarks.segments = &lists.segments;
    landmarks.from = rows;
    if (memory.value_scores.count > 0) landmarks.value_scores = memory.value_scores;
    landmarks.heads = pattern.heads;
    landmarks.rank = pattern.ranks;
    landmarks.norm = landmark_norm;
    landmarks.out = memory.landmarks;
    backend.Run(landmarks);
  }
  const kernels::Source fresh = HeadsSource(compute, rows.keys, rows.values, pattern.heads);
  const std::array<kernels::Source, 3> sources = {
      fresh,
      HeadsSource(compute, memory.landmarks.Columns(0, d), memory.landmarks.Columns(d, d),
                  pattern.heads),
      fresh};
  kernels::Call call = HeadsCall(compute, rows.q, memory.normed, pattern.heads);
  call.scale = pattern.scale;
  call.sources = sources;
  call.tables = tables;
  backend.Run(ops::Attend{lists.tokens, call});
  // A class row sees its own key and what the map's tokens made of theirs, or these.
  const std::array<kernels::Source, 2> seen = {
      fresh, pattern.class_sees_outputs
                 ? HeadsSource(compute, memory.normed, memory.normed, pattern.heads)
                 : fresh};
  call.sources = seen;
  call.tables = {};
  backend.Run(ops::Attend{lists.class_rows, call});
}

LongShortRows SideBySide(const Rows& normed, int64_t count, std::byte* to) {
  const int64_t d = normed.width;
  const Rows all = {to, count, 3 * d, 3 * d, normed.element};
  LongShortRows rows;
  rows.q = all.Columns(0, d);
  rows.keys = all.Columns(d, d);
  rows.values = all.Columns(2 * d, d);
  return rows;
}

ops::AttendLargeMap LargeMapOf(const LongShortPattern& pattern, const LongShortBand& band,
                               const LongShortMemory& memory, const NormWeight* landmark_norm,
                               const LargeMapRows& rows) {
  return {pattern,
          band,
          landmark_norm,
          rows,
          memory.rows.q,
          memory.outputs,
          memory.scores.floats(),
          memory.sliced_values.count > 0 ? memory.sliced_values.floats() : nullptr,
          memory.sliced,
          memory.in_scratch};
}

}  // namespace longview::models
