#include "models/cvt_ls/batch.h"

#include <cstring>

#include "models/cvt_ls/block.h"

namespace longview::models {

StagedBatch::TokenMaker CvtBatch::Tokens() const {
  const CvtStageWeights& embedding = weights().stages[stage()];
  const CvtEmbedding& conv = kCvtEmbeddings[stage()];
  return {&*embedding.embed, config().embed_norm ? &embedding.embed_norm : nullptr,
          conv.kernel,       conv.stride,
          conv.padding(),    buffers().panel};
}

void CvtBatch::EnterStage() {
  const CvtStage& here = config().stages[stage()];
  const int64_t d = here.width;
  if (here.class_token) {
    for (const MapTokens& image : plan().images) {
      std::copy_n(weights().class_token.begin(), d, buffers().x + int64_t{image.row0} * d);
    }
  }
  // Last panels read past the rows: what stands there must not slow arithmetic down.
  std::memset(buffers().rows, 0, buffers().qkv - buffers().rows);
}

void CvtBatch::RunBlock() { RunCvtBlock(context(), stage(), block(), plan(), buffers(), times()); }

// The last norm of the class row, or of the mean over all rows.
std::vector<float> CvtBatch::Feature(int member) const {
  if (config().backbone) return {};
  const CvtStage& last = config().stages.back();
  const MapTokens& image = LastTokens(member);
  const int64_t d = last.width;
  const float* x = LastRows(member);
  std::vector<float> row(x, x + d);
  if (config().mean_pool) {
    std::vector<double> sum(d);
    const auto add = [&](int64_t place) {
      for (int64_t c = 0; c < d; ++c) sum[c] += x[place * d + c];
    };
    if (last.class_token) add(0);
    // Row-major over the map whatever order the tokens lie in.
    for (const int32_t place : *image.places) add(place);
    for (int64_t c = 0; c < d; ++c) row[c] = static_cast<float>(sum[c] / image.rows);
  }
  std::vector<float> feature(d);
  ChooseRowKernels(Compute::kFp32).norm(row.data(), weights().norm.view(), d, feature.data());
  return feature;
}

}  // namespace longview::models
