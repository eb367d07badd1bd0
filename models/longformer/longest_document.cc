#include "models/longformer/longest_document.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "kernels/span/band_planner.h"
#include "models/longformer/layer_plan.h"

namespace longview::models {
namespace {

// A document of `tokens` tokens, the first `globals` of them global, that wants its first `wanted`
// rows.
EncoderSequence MakeDocument(int tokens, int globals, int wanted) {
  EncoderSequence document;
  document.ids.assign(static_cast<size_t>(tokens), 0);
  document.positions.assign(static_cast<size_t>(tokens), 0);
  document.roles.assign(static_cast<size_t>(tokens), kernels::kLocalToken);
  std::fill_n(document.roles.begin(), globals, kernels::kGlobalToken);
  document.wanted.resize(static_cast<size_t>(wanted));
  std::iota(document.wanted.begin(), document.wanted.end(), 0);
  return document;
}

// Bytes of a layer's plans and lists. A tile has one span of global tokens and one per block of
// its window; a span of its own has an interval for every row.
size_t LayerListBound(const LongformerConfig& config, int layer, size_t tokens) {
  const std::vector<int>& dilation = config.dilation[layer];
  const std::set<int> steps(dilation.begin(), dilation.end());
  const size_t runs = std::max<size_t>(steps.size(), 1) * (dilation.empty() ? 1 : config.heads);
  const size_t widest = steps.empty() ? 1 : static_cast<size_t>(*steps.rbegin());
  const size_t spans = 4 + 2 * static_cast<size_t>(config.window[layer]) / kernels::kBlockSlots;
  const size_t heads = static_cast<size_t>(config.heads);
  const size_t band =
      tokens * runs *
          (sizeof(kernels::Tile) + spans * (sizeof(kernels::Span) + sizeof(kernels::Interval))) +
      tokens * heads * sizeof(kernels::Item);
  // Every residue class begins a block of slots.
  const size_t slots = (runs + 2) * (tokens + (widest + 1) * kernels::kBlockSlots);
  const size_t parts = tokens / kernels::kSplitSlots + 2;
  const size_t full =
      tokens * heads * sizeof(kernels::Merge) +
      parts * (tokens / 8 + 1) *
          (sizeof(kernels::Tile) + sizeof(kernels::Span) + heads * sizeof(kernels::Item));
  return band + full + slots * (sizeof(int32_t) + 1) + 16 * tokens * sizeof(int32_t);
}

size_t ListBound(const LongformerConfig& config, int max_tokens) {
  const auto tokens = static_cast<size_t>(max_tokens);
  size_t bytes = 8 * tokens * sizeof(int32_t);
  for (int layer = 0; layer < config.layers; ++layer) {
    bytes += LayerListBound(config, layer, tokens) + 32 * kernels::kAlignment;
  }
  return bytes;
}

}  // namespace

DeviceRunBytes LongestLongformerBytes(
    const LongformerConfig& config, int max_tokens,
    absl::FunctionRef<DeviceRunBytes(RaggedBatch::Sequences)> bytes) {
  int folded = 0;
  while (folded < max_tokens && FoldsGlobals(config, folded + 1)) ++folded;
  DeviceRunBytes most;
  for (const int globals : {folded, max_tokens}) {
    // One row less than all: the last layer then has buffers of its own for nearly as many.
    for (const int wanted : {max_tokens, std::max(1, max_tokens - 1)}) {
      const EncoderSequence document = MakeDocument(max_tokens, globals, wanted);
      const std::array<const EncoderSequence*, 1> one = {&document};
      most.Include(bytes(one));
    }
  }
  most.lists = ListBound(config, max_tokens);
  return most;
}

}  // namespace longview::models
