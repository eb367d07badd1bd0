#include "tests/bench/full_cache_step.h"

#include <algorithm>
#include <bit>

#include "kernels/cuda/span/decode_plan.h"
#include "kernels/cuda/span/launch_shape.h"
#include "kernels/cuda/token/array_carver.h"
#include "kernels/cuda/token/cache_rows.h"
#include "kernels/cuda/token/decode_layers.h"
#include "kernels/span/paged_planner.h"
#include "kernels/span/softmax_state.h"
#include "tests/bench/full_decoder.h"

namespace longview::bench {

using kernels::CacheStep;
using namespace kernels::cuda;  // NOLINT: a step as those of this room.

namespace {

constexpr int kStrip = 0;

kernels::Plan PlanRows(const DecodeShape& shape, std::span<const int32_t> positions) {
  kernels::PagedPattern pattern;
  pattern.heads = shape.heads();
  pattern.tile_rows = kDeviceTileRows;
  std::vector<kernels::PagedSequence> batch(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    batch[i].query_row0 = static_cast<int32_t>(i);
    batch[i].tokens = 1;
    batch[i].start = positions[i];
  }
  return CutForDecode(PlanPaged(pattern, batch));
}

// Blocks of the longest sequence up to a power of two.
GraphKey KeyOf(const kernels::Plan& plan, std::span<const int32_t> positions) {
  const int32_t blocks = *std::ranges::max_element(positions) / kernels::kBlockSlots + 1;
  return {BatchBucket(static_cast<int>(positions.size())),
          static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(blocks))), 0,
          RoundedUp(CapacityOf(plan))};
}

}  // namespace

struct FullCacheStep::Lists {
  int32_t* ids;           // [rows]
  CacheRowPlace* places;  // [rows]
  int32_t* blocks;        // [rows * key.entries]
  int32_t* offsets;       // [rows]
  std::byte* plan;
};

struct FullCacheStep::Buffers {
  DecodeRows rows;
  std::byte* partials;
};

FullCacheStep::FullCacheStep(const DecodeShape& shape, const DecodeWeights& weights,
                             const kernels::ProjectionCache& cache, const CacheStep& step,
                             std::span<const int32_t> positions)
    : shape_(shape),
      weights_(weights),
      cache_(cache),
      step_(step),
      plan_(PlanRows(shape, positions)),
      key_(KeyOf(plan_, positions)),
      sequences_(static_cast<int32_t>(positions.size())) {}

FullCacheStep::Lists FullCacheStep::CarveLists(std::byte* memory, size_t* bytes) const {
  ArrayCarver take(memory);
  const auto rows = static_cast<size_t>(key_.bucket);
  Lists lists;
  lists.ids = take.Array<int32_t>(rows);
  lists.places = take.Array<CacheRowPlace>(rows);
  lists.blocks = take.Array<int32_t>(rows * static_cast<size_t>(key_.entries));
  lists.offsets = take.Array<int32_t>(rows);
  lists.plan = take.Array<std::byte>(ImageBytes(key_.capacity));
  *bytes = take.used();
  return lists;
}

FullCacheStep::Buffers FullCacheStep::CarveBuffers(std::byte* memory, size_t* bytes) const {
  ArrayCarver take(memory);
  Buffers buffers;
  buffers.rows = CarveDecodeRows(shape_, key_.bucket, take);
  buffers.partials =
      take.Array<std::byte>(kernels::PartialBytes(key_.capacity.partial_slots, shape_.dim()));
  *bytes = take.used();
  return buffers;
}

size_t FullCacheStep::list_bytes() const {
  size_t bytes = 0;
  CarveLists(nullptr, &bytes);
  return bytes;
}

size_t FullCacheStep::buffer_bytes() const {
  size_t bytes = 0;
  CarveBuffers(nullptr, &bytes);
  return bytes;
}

void FullCacheStep::WriteLists(std::byte* host, std::byte* device) {
  size_t bytes = 0;
  const Lists to = CarveLists(host, &bytes);
  const std::span<const kernels::CachePlace> places = step_.places(CacheStep::kDecode, kStrip);
  for (int32_t row = 0; row < key_.bucket; ++row) {
    const bool there = row < sequences_;
    to.ids[row] = there ? kNextId : 0;
    to.places[row] =
        there ? PlaceOf(cache_, places[static_cast<size_t>(row)]) : CacheRowPlace{-1, 0};
  }
  WriteTable(step_.table(CacheStep::kDecode, kStrip), int64_t{key_.bucket} * key_.entries,
             to.blocks, to.offsets);
  WriteImage(plan_, key_.capacity, to.plan);
  lists_ = device;
}

Status FullCacheStep::Run(const PluginApi& api, Stream* stream, std::byte* buffers) const {
  size_t bytes = 0;
  const Lists lists = CarveLists(lists_, &bytes);
  const Buffers b = CarveBuffers(buffers, &bytes);
  DecodeLayers layers(shape_, weights_, api, stream, b.rows, key_.bucket);
  layers.Embed(lists.ids);
  for (int layer = 0; layer < cache_.shape().layers; ++layer) {
    layers.Project(layer);
    layers.Store(RowsOf(cache_, kStrip, layer), lists.places);
    SpanCall call = layers.Queries();
    call.sources_used = 1;
    call.sources[0] = BlocksOf(cache_, kStrip, layer, lists.blocks, lists.offsets);
    layers.Attend(call, key_.capacity, lists.plan, b.partials);
    layers.Finish(layer);
  }
  layers.Logits();
  return layers.status();
}

const float* FullCacheStep::Logits(std::byte* buffers) const {
  size_t bytes = 0;
  return CarveBuffers(buffers, &bytes).rows.logits;
}

}  // namespace longview::bench
