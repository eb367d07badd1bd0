#include "models/vil/batch.h"

#include <algorithm>
#include <cstring>

#include "models/vil/block.h"

namespace longview::models {

StagedBatch::TokenMaker VilBatch::Tokens() const {
  const VilStageWeights& patches = weights().stages[stage()];
  const int patch = config().stages[stage()].patch;
  const Norm* norm = config().norm_embed ? &patches.patch_norm.host : nullptr;
  return {&*patches.patch.host, norm, patch, patch, 0, buffers().panel};
}

void VilBatch::AddPlace(TokenFinder::Place place, float* token) const {
  if (plan().positions.empty()) return;
  const int64_t half = config().stages[stage()].width / 2;
  const VilMapWeights& map = *plan().positions[place.image];
  const float* down = map.row_positions.data() + place.y * half;
  const float* across = map.column_positions.data() + place.x * half;
  for (int64_t i = 0; i < half; ++i) {
    token[i] += down[i];
    token[half + i] += across[i];
  }
}

void VilBatch::EnterStage() {
  const VilStage& here = config().stages[stage()];
  const VilStageWeights& globals = weights().stages[stage()];
  for (const MapTokens& image : plan().images) {
    float* x = buffers().x + int64_t{image.row0} * here.width;
    std::ranges::copy(AllOf(globals.class_rows), x);
  }
  // Last panels read past the rows: what stands there must not slow arithmetic down.
  std::memset(buffers().rows, 0, buffers().qkv - buffers().rows);
}

void VilBatch::RunBlock() { RunVilBlock(context(), stage(), block(), plan(), buffers(), times()); }

// After the last norm: the first global token, or the mean over all tokens in row order.
std::vector<float> VilBatch::Feature(int member) const {
  if (config().backbone) return {};
  const VilStage& last = config().stages.back();
  const MapTokens& image = LastTokens(member);
  const int64_t d = last.width;
  const float* x = LastRows(member);
  const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
  const NormWeights norm = weights().norm.host.view();
  std::vector<float> feature(d);
  if (config().reads_class_token()) {
    floats.norm(x, norm, d, feature.data());
    return feature;
  }
  // Row-major over the map whatever order the tokens lie in.
  std::vector<float> row(d);
  std::vector<double> sum(d);
  const auto add = [&](int64_t place) {
    floats.norm(x + place * d, norm, d, row.data());
    for (int64_t c = 0; c < d; ++c) sum[c] += row[c];
  };
  for (int g = 0; g < last.globals; ++g) add(g);
  for (const int32_t place : *image.places) add(place);
  for (int64_t c = 0; c < d; ++c) feature[c] = static_cast<float>(sum[c] / image.rows);
  return feature;
}

}  // namespace longview::models
