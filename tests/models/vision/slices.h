// Large maps go through a stage slice by slice: what must not depend on how they are cut.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/dense/compute.h"
#include "models/dense/scratch_pool.h"
#include "models/image/pipeline.h"
#include "models/vision/family.h"
#include "models/vision/pass_batch.h"

namespace longview::models {

// All stages' maps of every picture, then the vector that enters the head.
using SliceResults = std::vector<std::vector<float>>;

// Runs pictures as one batch that cuts maps of more than so many tokens into slices of that many.
using SlicedRun = std::function<SliceResults(std::span<const PixelValues>, int64_t tokens)>;

// The results of a batch of a model driven below LoadModel; see staged_family.h.
template <class Forward>
SliceResults RunBatch(const typename Forward::Context& context,
                      std::span<const PixelValues> pictures) {
  const size_t stages = context.config->stages.size();
  std::vector<VisionInput> inputs;
  for (const PixelValues& pixels : pictures) {
    VisionInput& input = inputs.emplace_back();
    input.pixels = &pixels;
    for (size_t s = 0; s < stages; ++s) input.stages.push_back(static_cast<int>(s));
  }
  ScratchPool pool;
  HostPassBatch<Forward> batch(context, inputs, pool, nullptr);
  while (batch.Advance()) {
  }
  SliceResults results;
  for (size_t i = 0; i < pictures.size(); ++i) {
    std::vector<FeatureMap> maps = batch.TakeMaps(i);
    EXPECT_EQ(maps.size(), stages);
    for (FeatureMap& map : maps) results.push_back(std::move(map.values));
    results.push_back(batch.Embedding(i));
  }
  return results;
}

// Slices of each of these sizes make of one picture what its whole map makes, but for the rounding
// of the compute type; the results listed in `same_bits` make it bit by bit.
void ExpectSlicesMakeTheWhole(const SlicedRun& run, ImageSize size,
                              std::span<const int64_t> slice_tokens, Compute compute,
                              std::span<const size_t> same_bits);

// A picture of this size, in slices, has the same bits alone as among smaller and larger ones, and
// so have they.
void ExpectBatchKeepsBits(const SlicedRun& run, ImageSize size);

// Large images need at most three of their first stage's map: the residual stream, what lies
// beside it, and little more; those that are hardly large have few slices, and need more.
// `name`: for the print. REQUIRES: that stage's stride is 4.
template <class Forward>
void ExpectFewLiveMaps(const typename Forward::Context& context, const std::string& name) {
  for (const ImageSize size : {ImageSize{512, 512}, {800, 1344}, {1024, 1024}}) {
    const double map = 4.0 * (size.height / 4) * (size.width / 4) * context.config->stages[0].width;
    const VisionPicture picture = WholePicture(size, context.config->stages.size());
    const auto pass = Forward::MakePass(context, {&picture, 1}, true);
    const double live = static_cast<double>(CountOnHost(*pass, context).need.memory()) / map;
    std::printf("%s, %d x %d: %.2f live maps\n", name.c_str(), size.height, size.width, live);
    EXPECT_LE(live, size.height < 800 ? 4.5 : 3)
        << name << ", " << size.height << " x " << size.width;
  }
}

}  // namespace longview::models
