#include "models/vil/map_weights.h"

#include <algorithm>

#include "models/feature_maps/shape_cache.h"

namespace longview::models {
namespace {

// One output place of an axis: two inputs and the second one's share.
struct Tap {
  int low = 0;
  int high = 0;
  float share = 0;
};

std::vector<Tap> ResizeTaps(int from, int to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  std::vector<Tap> taps(to);
  for (int i = 0; i < to; ++i) {
    const float at = std::max(0.0f, (static_cast<float>(i) + 0.5f) * scale - 0.5f);
    const int low = std::min(static_cast<int>(at), from - 1);
    taps[i] = {low, std::min(low + 1, from - 1), at - static_cast<float>(low)};
  }
  return taps;
}

// The learned table for this map; only full attention's depends on it.
std::vector<float> LearnedTable(const VilStage& stage, std::span<const float> learned,
                                ImageSize map) {
  if (stage.attention != VilAttention::kFull) return {learned.begin(), learned.end()};
  const auto span = [](ImageSize size) {
    return ImageSize{2 * size.height - 1, 2 * size.width - 1};
  };
  return ResizePlanes(learned, stage.heads, span(stage.map), span(map));
}

}  // namespace

std::vector<float> ResizePlanes(std::span<const float> values, int64_t planes, ImageSize from,
                                ImageSize to) {
  if (from == to) return {values.begin(), values.end()};
  const std::vector<Tap> rows = ResizeTaps(from.height, to.height);
  const std::vector<Tap> columns = ResizeTaps(from.width, to.width);
  std::vector<float> out;
  out.reserve(planes * to.height * to.width);
  for (int64_t p = 0; p < planes; ++p) {
    const float* plane = values.data() + p * from.height * from.width;
    for (const Tap& row : rows) {
      const float* low = plane + int64_t{row.low} * from.width;
      const float* high = plane + int64_t{row.high} * from.width;
      for (const Tap& column : columns) {
        const auto along = [&](const float* line) {
          return (1 - column.share) * line[column.low] + column.share * line[column.high];
        };
        out.push_back((1 - row.share) * along(low) + row.share * along(high));
      }
    }
  }
  return out;
}

std::vector<float> ResizeRows(std::span<const float> values, int from, int to, int64_t channels) {
  if (from == to) return {values.begin(), values.end()};
  std::vector<float> out;
  out.reserve(to * channels);
  for (const Tap& tap : ResizeTaps(from, to)) {
    for (int64_t c = 0; c < channels; ++c) {
      out.push_back((1 - tap.share) * values[tap.low * channels + c] +
                    tap.share * values[tap.high * channels + c]);
    }
  }
  return out;
}

size_t BytesOf(const VilMapWeights& weights) {
  return BytesOf(weights.row_positions) + BytesOf(weights.column_positions) +
         BytesOf(weights.tables);
}

VilMapWeights MakeVilMapWeights(const VilStage& stage, const VilStageWeights& weights,
                                ImageSize map, bool first_positions,
                                std::span<const int32_t> bias_rows) {
  VilMapWeights made;
  if (stage.absolute) {
    const int64_t half = stage.width / 2;
    const auto along = [&](const std::vector<float>& positions, int from, int to) {
      const std::span<const float> all(positions);
      const bool cut = first_positions && to <= from;
      return cut ? ResizeRows(all.first(to * half), to, to, half) : ResizeRows(all, from, to, half);
    };
    made.row_positions = along(weights.row_positions, stage.map.height, map.height);
    made.column_positions = along(weights.column_positions, stage.map.width, map.width);
  }
  for (size_t b = 0; stage.relative_bias() && b < weights.blocks.size(); ++b) {
    const std::vector<float> learned =
        LearnedTable(stage, AllOf(weights.blocks[b].bias.local), map);
    const size_t width = learned.size() / stage.heads;
    std::vector<float>& table = made.tables.emplace_back();
    table.reserve(bias_rows.size() * stage.heads);
    for (int h = 0; h < stage.heads; ++h) {
      for (const int32_t row : bias_rows) table.push_back(learned[h * width + row]);
    }
  }
  return made;
}

}  // namespace longview::models
