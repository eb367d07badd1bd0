// The pyramid in the memory that its heads count for it.
#include "models/detection/pyramid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "models/detection/head.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

constexpr int kWidth = 4;  // Channels of the pyramid.

DenseLayer LayerOf(int64_t in) {
  PanelRules rules;
  const std::vector<float> weight(static_cast<size_t>(kWidth * in), 0.01f);
  absl::StatusOr<Linear> linear = Linear::Pack("test", weight, kWidth, in, Compute::kFp32, rules);
  EXPECT_TRUE(linear.ok()) << linear.status();
  return {*std::move(linear), std::vector<float>(kWidth)};
}

Convolution ConvolutionOf(int64_t channels, int stride) {
  return {LayerOf(9 * channels), 3, stride};
}

// A detector whose backbone has two maps of these channels, as far as its pyramid.
struct Detector {
  Detector(DetectorConfig::Kind kind, std::vector<int> of_stages) : channels(std::move(of_stages)) {
    config.kind = kind;
    config.labels = {"thing"};
    config.stages = {0, 1};
    config.strides = {4, 8};
    config.width = kWidth;
    config.anchor_sizes.assign(config.levels(), {32});
    config.anchor_ratios.assign(config.levels(), {1});
    config.mask_rcnn.proposals = 4;
    config.mask_rcnn.box_bins = config.mask_rcnn.mask_bins = 2;
    config.mask_rcnn.mask_width = kWidth;
    for (const int in : channels) {
      weights.pyramid.lateral.push_back(LayerOf(in));
      weights.pyramid.output.push_back(ConvolutionOf(kWidth, 1));
    }
    weights.pyramid.further.push_back(ConvolutionOf(channels.back(), 2));
    weights.pyramid.further.push_back(ConvolutionOf(kWidth, 2));
  }

  std::vector<FeatureMap> Maps(ImageSize size) const {
    std::vector<FeatureMap> maps;
    for (size_t s = 0; s < channels.size(); ++s) {
      FeatureMap& map = maps.emplace_back();
      map.channels = channels[s];
      map.size = {size.height / config.strides[s], size.width / config.strides[s]};
      map.values.assign(size_t{1} * map.channels * map.size.height * map.size.width, 1.0f);
    }
    return maps;
  }

  const std::vector<int> channels;
  DetectorConfig config;
  DetectorWeights weights;
};

// Runs the pyramid in a block of exactly the counted bytes, with others behind it.
void ExpectPyramidStaysInside(const Detector& detector) {
  constexpr ImageSize kSize = {64, 64};
  constexpr size_t kBehind = size_t{16} << 20;
  constexpr auto kMark = std::byte{0x5a};
  const TorchParallelFor pool;
  const HeadContext context = {Compute::kFp32, &pool};
  const auto head = detector.config.kind == DetectorConfig::Kind::kRetinaNet
                        ? MakeRetinaNetHead(detector.config, detector.weights, context)
                        : MakeMaskRcnnHead(detector.config, detector.weights, context);
  const size_t bytes = head->ScratchBytes(kSize, 1, false);
  Scratch block(bytes + kBehind);
  std::fill_n(block.data() + bytes, kBehind, kMark);
  const std::vector<FeatureMap> maps = detector.Maps(kSize);
  DetectorInput input;
  input.maps = maps;
  input.size = input.padded = kSize;
  const auto run = head->Begin(input, block.data(), nullptr);
  const size_t steps = 2 * detector.channels.size() + 1;
  for (size_t step = 0; step < steps; ++step) ASSERT_TRUE(run->Advance());
  EXPECT_EQ(std::count(block.data() + bytes, block.data() + bytes + kBehind, kMark),
            static_cast<ptrdiff_t>(kBehind));
}

TEST(PyramidTest, PanelsHoldMapsOfManyChannels) {
  ExpectPyramidStaysInside({DetectorConfig::Kind::kMaskRcnn, {4, 4096}});
  ExpectPyramidStaysInside({DetectorConfig::Kind::kMaskRcnn, {4096, 4}});
  ExpectPyramidStaysInside({DetectorConfig::Kind::kRetinaNet, {4096, 4}});
}

}  // namespace
}  // namespace longview::models
