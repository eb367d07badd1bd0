#include "models/feature_maps/attend_large_map.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "models/feature_maps/slice_attention.h"
#include "models/ops/host_backend.h"

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

std::byte* CarveLargeMap(const LongShortPattern& pattern, std::span<const LongShortBand> bands,
                         const ComputeContext& context, Carver& carver) {
  size_t bytes = 0;
  for (const LongShortBand& band : bands) {
    Carver one(nullptr);
    if (band.is_large()) CarveSliced(pattern, band, context, one);
    bytes = std::max(bytes, one.used());
  }
  return carver.TakeBytes(bytes);
}

namespace ops {

// Beside that of `rows`.
OpWork AttendLargeMap::Work() const {
  const double width = pattern.width;
  OpWork work = {.attention = 2 * static_cast<double>(band.map.tokens) * pattern.ranks * width};
  for (const LongShortSlice& slice : band.map.slices) {
    const kernels::Plan& plan = band.shapes[slice.shape]->tokens;
    work.attention += 2 * width * static_cast<double>(plan.useful) / pattern.heads;
  }
  return work;
}

void AttendLargeMap::OnHost(HostBackend& host) const {
  const std::vector<LongShortSlice>& slices = band.map.slices;
  Carver carver = in_scratch ? host.Scratch() : Carver(memory);
  const SlicedMemory sliced = CarveSliced(pattern, band, host.context(), carver);
  LongShortSliceRows buffers;
  buffers.qkv = qkv.data;
  buffers.z = out.data;
  buffers.weights = scores;
  buffers.value_weights = value_scores;
  buffers.workspace = sliced.workspace;
  const bool runs = in_scratch ? host.Runs(carver) : host.Runs();
  std::optional<SlicedAttention> attention;
  if (runs) attention.emplace(pattern, band.map, host.context(), buffers, sliced.scratch);
  // Weights of landmarks are a softmax over all tokens: every slice is scored, then projected for
  // the pools, and once more for attention below, so that no whole map is projected at once.
  if (pattern.ranks > 0) {
    for (const LongShortSlice& slice : slices) rows.Score(slice.begin, slice.end);
    if (runs) attention->Weigh();
    for (const LongShortSlice& slice : slices) {
      rows.Project(slice.begin, slice.end, false, qkv.data);
      const Stopwatch watch = host.Timed(&RunTimes::attention);
      if (runs) attention->Pool(qkv.data, slice.begin, slice.end - slice.begin);
    }
    if (runs) attention->EndLandmarks(landmark_norm ? &landmark_norm->host : nullptr);
  }
  const int64_t g = pattern.class_tokens;
  const Rows locals = qkv.Columns(0, 3 * pattern.width).From(g);
  if (g > 0) {
    rows.ProjectClass(qkv.data);
    if (runs) attention->BeginClass();
  }
  // Rows that a slice shares with the one before are moved to the front.
  int64_t load_begin = 0, load_end = 0;
  for (const LongShortSlice& slice : slices) {
    const int64_t kept = load_end - slice.load_begin;
    if (runs) MoveRows(locals, slice.load_begin - load_begin, 0, kept);
    rows.Project(load_end, slice.load_end, true, runs ? locals.Row(kept) : nullptr);
    load_begin = slice.load_begin;
    load_end = slice.load_end;
    const std::vector<kernels::Table> tables = rows.Tables(slice.shape);
    const Stopwatch watch = host.Timed(&RunTimes::attention);
    if (runs) attention->Attend(slice, *band.shapes[slice.shape], tables);
  }
  if (!runs) return;
  if (g > 0) attention->EndClass();
  host.ClearTail(out.First(band.rows));
}

void AttendLargeMap::OnDevice(DeviceBackend&) const {
  throw std::logic_error("maps on a device are never in slices");
}

}  // namespace ops
}  // namespace longview::models
