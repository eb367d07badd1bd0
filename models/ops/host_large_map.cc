// Long-short attention of one large map on the host, slice by slice.
#include <algorithm>
#include <cstring>

#include "models/long_short/slice_attention.h"
#include "models/ops/host_map_ops.h"

namespace longview::models {

namespace {

struct SlicedMemory {
  SliceScratch scratch;
  std::byte* workspace = nullptr;
};

SlicedMemory CarveSliced(const LongShortPattern& pattern, const LongShortBand& band,
                         const ComputeContext& context, Carver& carver) {
  SlicedMemory memory;
  memory.scratch = CarveSliceScratch(pattern, context, band.map.rows(pattern), carver);
  size_t workspace = 0;
  for (const auto& shape : band.shapes) {
    workspace = std::max(workspace, SliceWorkspace(pattern, *shape, context));
  }
  memory.workspace = carver.TakeBytes(workspace);
  return memory;
}

}  // namespace

std::byte* HostMapOps::CarveLargeMap(const LongShortPattern& pattern,
                                     std::span<const LongShortBand> bands, Carver& carver) const {
  size_t bytes = 0;
  for (const LongShortBand& band : bands) {
    Carver one(nullptr);
    if (band.is_large()) CarveSliced(pattern, band, context_, one);
    bytes = std::max(bytes, one.used());
  }
  return carver.TakeBytes(bytes);
}

void HostMapOps::AttendLargeMap(const LargeMapArgs& args) {
  const LongShortPattern& pattern = *args.pattern;
  const LongShortBand& band = *args.band;
  const std::vector<LongShortSlice>& slices = band.map.slices;
  Carver carver = args.in_scratch ? BeginScratch() : Carver(args.memory);
  const SlicedMemory memory = CarveSliced(pattern, band, context_, carver);
  LongShortSliceRows rows;
  rows.qkv = args.qkv.data;
  rows.z = args.out.data;
  rows.weights = args.scores;
  rows.value_weights = args.value_scores;
  rows.workspace = memory.workspace;
  const bool runs = args.in_scratch ? Runs(carver) : !counts();
  double* const seconds = times_ ? &times_->attention : nullptr;
  std::optional<SlicedAttention> attention;
  if (runs) attention.emplace(pattern, band.map, context_, rows, memory.scratch);
  if (pattern.ranks > 0) {
    for (const LongShortSlice& slice : slices) args.rows->Score(slice.begin, slice.end);
    if (runs) attention->Weigh();
    for (const LongShortSlice& slice : slices) {
      args.rows->Project(slice.begin, slice.end, false, rows.qkv);
      const Stopwatch watch(seconds);
      if (runs) attention->Pool(rows.qkv, slice.begin, slice.end - slice.begin);
    }
    if (runs) {
      attention->EndLandmarks(args.landmark_norm ? &args.landmark_norm->host : nullptr);
    }
  }
  const int64_t g = pattern.class_tokens;
  const Rows locals = args.qkv.Columns(0, 3 * pattern.width).From(g);
  if (g > 0) {
    args.rows->ProjectClass(rows.qkv);
    if (runs) attention->BeginClass();
  }
  // Rows that a slice shares with the one before are moved to the front.
  int64_t load_begin = 0, load_end = 0;
  for (const LongShortSlice& slice : slices) {
    const int64_t kept = load_end - slice.load_begin;
    Move(locals, slice.load_begin - load_begin, 0, kept);
    args.rows->Project(load_end, slice.load_end, true, runs ? locals.Row(kept) : nullptr);
    load_begin = slice.load_begin;
    load_end = slice.load_end;
    const std::vector<kernels::Table> tables = args.rows->Tables(slice.shape);
    const Stopwatch watch(seconds);
    if (runs) attention->Attend(slice, *band.shapes[slice.shape], tables);
  }
  if (!runs) {
    const double width = pattern.width;
    counted().attention += 2 * static_cast<double>(band.map.tokens) * pattern.ranks * width;
    for (const LongShortSlice& slice : slices) {
      const kernels::Plan& plan = band.shapes[slice.shape]->tokens;
      counted().attention += 2 * width * static_cast<double>(plan.useful) / pattern.heads;
    }
    return;
  }
  if (g > 0) attention->EndClass();
  ClearTail(args.out.First(band.rows));
}

}  // namespace longview::models
