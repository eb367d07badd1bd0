// One large map through long-short attention, slice by slice, with rows that a model makes when
// they are needed and as often as it takes. Model has, of tokens [begin, end) by rank:
//
//   Score(begin, end)                 their scores, into rows.weights and value_weights
//   Project(begin, end, queries, to)  T [end - begin, 3C]; without `queries` they are not read
//   ProjectClass(to)                  of the class tokens, T [g, 3C]
//   Tables(shape)                     of a shape's plan
#pragma once

#include <cstring>
#include <vector>

#include "models/dense/linear.h"
#include "models/layers/stopwatch.h"
#include "models/long_short/map_bands.h"
#include "models/long_short/slice_attention.h"

namespace longview::models {

// Writes rows.z [band.rows + panel, C]. What Model reads must not change before. `landmark_norm`:
// see SlicedAttention; `seconds` of attention are added to, unless null.
template <class Model>
void RunLargeMap(const LongShortPattern& pattern, const LongShortBand& band,
                 const Norm* landmark_norm, const ComputeContext& context,
                 const LongShortSliceRows& rows, double* seconds, const Model& model) {
  const std::vector<LongShortSlice>& slices = band.map.slices;
  SlicedAttention attention(pattern, band.map, context, rows);
  if (pattern.ranks > 0) {
    for (const LongShortSlice& slice : slices) model.Score(slice.begin, slice.end);
    attention.Weigh();
    for (const LongShortSlice& slice : slices) {
      model.Project(slice.begin, slice.end, false, rows.qkv);
      const Stopwatch watch(seconds);
      attention.Pool(rows.qkv, slice.begin, slice.end - slice.begin);
    }
    attention.EndLandmarks(landmark_norm);
  }
  const int64_t g = pattern.class_tokens;
  const int64_t row_bytes = pattern.width * ElementBytes(context.compute), stride = 3 * row_bytes;
  std::byte* const locals = rows.qkv + g * stride;
  if (g > 0) {
    model.ProjectClass(rows.qkv);
    attention.BeginClass();
  }
  // Rows that a slice shares with the one before are moved to the front.
  int64_t load_begin = 0, load_end = 0;
  for (const LongShortSlice& slice : slices) {
    std::memmove(locals, locals + (slice.load_begin - load_begin) * stride,
                 static_cast<size_t>((load_end - slice.load_begin) * stride));
    model.Project(load_end, slice.load_end, true, locals + (load_end - slice.load_begin) * stride);
    load_begin = slice.load_begin;
    load_end = slice.load_end;
    const std::vector<kernels::Table> tables = model.Tables(slice.shape);
    const Stopwatch watch(seconds);
    attention.Attend(slice, *band.shapes[slice.shape], tables);
  }
  if (g > 0) attention.EndClass();
  // Last panels read past the rows: what stands there must not slow arithmetic down.
  std::memset(rows.z + band.rows * row_bytes, 0, static_cast<size_t>(kPanelRows * row_bytes));
}

}  // namespace longview::models
