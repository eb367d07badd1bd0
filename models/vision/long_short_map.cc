#include "models/vision/long_short_map.h"

#include <algorithm>
#include <array>

#include "models/vision/staged_pass.h"

namespace longview::models {

LongShortLists StageLongShort(Ops& ops, const LongShortPlan& plan, const kernels::Plan& tokens) {
  return {ops.Stage(tokens), ops.Stage(plan.class_rows), ops.Stage(plan.offsets, plan.in_map)};
}

LongShortMemory CarveLongShort(const MapOps& maps, Compute compute, const LongShortNeeds& needs,
                               Carver& carver) {
  const LongShortPattern& pattern = needs.pattern;
  const int64_t d = pattern.width, element = ElementBytes(compute), columns = pattern.columns();
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
  const int64_t tail = needs.one_product ? 0 : maps.output_tail();
  const auto scores = [&](int64_t rows, bool wanted, Carver& from) {
    return CarveRows(wanted ? rows : 0, columns, sizeof(float), tail, from);
  };
  LongShortMemory memory;
  memory.normed = CarveRows(std::max(whole, read), d, element, maps.input_tail(), carver);
  memory.rows = maps.CarveLongShort(std::max(whole, slice), d, columns, needs.one_product, carver);
  memory.rows.scores = scores(whole, true, carver);
  memory.value_scores = scores(whole, needs.value_scores, carver);
  memory.landmarks = CarveRows(images * pattern.ranks, 2 * d, element, 0, carver);
  if (large == 0) return memory;
  Carver weights = carver;
  memory.outputs = CarveRows(large, d, element, maps.input_tail(), carver);
  memory.scores = scores(tokens, true, weights);
  memory.sliced_values = scores(tokens, needs.value_scores, weights);
  if (weights.used() > carver.used()) carver = weights;
  // Projections by one product take no scratch themselves.
  memory.in_scratch = needs.one_product;
  if (!memory.in_scratch) memory.sliced = maps.CarveLargeMap(pattern, needs.bands, carver);
  return memory;
}

void AttendLongShort(Ops& ops, const LongShortPattern& pattern, const LongShortLists& lists,
                     int64_t band_rows, const LongShortMemory& memory,
                     const NormWeight* landmark_norm, std::span<const kernels::Table> tables) {
  const int64_t d = pattern.width;
  const Compute compute = ops.compute();
  LongShortRows rows = memory.rows;
  for (Rows* part : {&rows.q, &rows.keys, &rows.values, &rows.scores}) {
    *part = part->First(band_rows);
  }
  if (pattern.ranks > 0) {
    LandmarkArgs landmarks;
    landmarks.segments = lists.segments;
    landmarks.from = rows;
    if (memory.value_scores.count > 0) landmarks.value_scores = memory.value_scores;
    landmarks.heads = pattern.heads;
    landmarks.rank = pattern.ranks;
    landmarks.norm = landmark_norm;
    landmarks.out = memory.landmarks;
    ops.Landmarks(landmarks);
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
  ops.Attend(lists.tokens, call);
  // A class row sees its own key and what the map's tokens made of theirs, or these.
  const std::array<kernels::Source, 2> seen = {
      fresh, pattern.class_sees_outputs
                 ? HeadsSource(compute, memory.normed, memory.normed, pattern.heads)
                 : fresh};
  call.sources = seen;
  call.tables = {};
  ops.Attend(lists.class_rows, call);
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

LargeMapArgs LargeMapOf(const LongShortPattern& pattern, const LongShortBand& band,
                        const LongShortMemory& memory, const NormWeight* landmark_norm,
                        const LargeMapRows& rows) {
  LargeMapArgs args;
  args.pattern = &pattern;
  args.band = &band;
  args.landmark_norm = landmark_norm;
  args.qkv = memory.rows.q;
  args.out = memory.outputs;
  args.scores = memory.scores.floats();
  if (memory.sliced_values.count > 0) args.value_scores = memory.sliced_values.floats();
  args.memory = memory.sliced;
  args.in_scratch = memory.in_scratch;
  args.rows = &rows;
  return args;
}

}  // namespace longview::models
