// A whole decode step of Transformer-LS on a device, against the model by definition in double
// precision: a cache in the device's memory, forks that part inside a segment, a beginning that is
// found again; and equal bits alone and in company.
#include "kernels/cuda/token/decode_step.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <vector>

#include "tests/kernels/cuda/support/decode_definition.h"
#include "tests/kernels/cuda/support/decode_model.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda {
namespace {

using testing::DecodeDefinition;
using testing::DecodeModel;
using testing::NamedWeights;
using testing::TestDevices;

enum class Schedule { kPaper, kBlocks, kBlocksZeroMemory };

DecodeShape Shape(Schedule schedule, bool pre_norm, DType dtype) {
  DecodeShape shape;
  shape.width = 32;
  shape.intermediate = 40;
  shape.vocab = 29;
  shape.attention = {2, 20, 8, 3};
  if (schedule != Schedule::kPaper) {
    shape.attention.block = 24;
    shape.attention.memory = 56;
    shape.attention.zero_memory = schedule == Schedule::kBlocksZeroMemory;
  }
  shape.pre_norm = pre_norm;
  shape.activation = RowActivation::kRelu;
  shape.dtype = dtype;
  return shape;
}

std::vector<int32_t> Text(int tokens, int seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids;
  for (int i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(random() % 29));
  return ids;
}

struct Setting {
  Schedule schedule;
  bool pre_norm;
  DType dtype;
};

class DecodeStepTest : public ::testing::TestWithParam<Setting> {
 protected:
  DecodeStepTest()
      : weights_(Shape(GetParam().schedule, GetParam().pre_norm, GetParam().dtype)),
        definition_(weights_) {}

  void ExpectNear(const std::vector<float>& got, std::span<const int32_t> ids) {
    const testing::Row want = definition_.Logits(ids);
    const double bound = GetParam().dtype == DType::kFloat32    ? 2e-4
                         : GetParam().dtype == DType::kBFloat16 ? 0.25
                                                                : 0.04;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], bound) << "logit " << i << " after " << ids.size() << " tokens";
    }
  }

  NamedWeights weights_;
  DecodeDefinition definition_;
};

TEST_P(DecodeStepTest, LogitsAreTheModelsByDefinition) {
  const std::vector<int32_t> text = Text(150, 1), young = Text(60, 2);
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    DecodeModel model(*device, weights_);
    CacheSequence first = model.Open({}), second = model.Open({});
    for (int t = 0; t < 150; ++t) {
      const bool both = t >= 70 && t < 130;
      std::vector<CacheSequence*> sequences = {&first};
      std::vector<int32_t> ids = {text[t]};
      if (both) {
        sequences.insert(sequences.begin(), &second);
        ids.insert(ids.begin(), young[t - 70]);
      }
      const auto logits = model.Step(sequences, ids);
      // Around ends of segments, windows and blocks, and at the end.
      if (t % 8 > 1 && t != 149 && t % 16 != 5) continue;
      ExpectNear(logits.back(), std::span(text).first(t + 1));
      if (both) ExpectNear(logits.front(), std::span(young).first(t - 69));
      if (HasFatalFailure()) return;
    }
    // 150 steps of one and two sequences.
    EXPECT_LE(model.rooms(), 20u);
  }
}

// 67 tokens: inside a segment and a block. A beginning of 64 is found.
TEST_P(DecodeStepTest, ForksAndFoundBeginningsReadOnLikeTheirText) {
  const std::vector<int32_t> text = Text(100, 3), other = Text(33, 4);
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    DecodeModel model(*device, weights_);
    CacheSequence whole = model.Open({});
    std::vector<std::vector<float>> alone;
    for (const int32_t id : text) alone.push_back(model.Step({&whole}, {id})[0]);
    whole.Publish();
    CacheSequence found = model.Open(text);
    ASSERT_EQ(found.tokens(), 64);
    CacheSequence fork = model.Open({});
    for (int t = 64; t < 67; ++t) EXPECT_EQ(model.Step({&found}, {text[t]})[0], alone[t]);
    fork = found.Fork();
    std::vector<int32_t> read(text.begin(), text.begin() + 67);
    for (int t = 67; t < 100; ++t) {
      const auto logits = model.Step({&fork, &found}, {other[t - 67], text[t]});
      read.push_back(other[t - 67]);
      ASSERT_EQ(logits[1], alone[t]) << t;
      if (t % 8 == 0 || t == 99) ExpectNear(logits[0], read);
    }
  }
}

// What is reserved at load is enough for every step within the limits.
TEST(DecodeRoomTest, NoStepNeedsMoreThanTheMost) {
  DecodeShape shape = Shape(Schedule::kPaper, true, DType::kFloat32);
  const SchedulePattern paper = {2, 20, 8, 3};
  for (const SchedulePattern& blocks : {paper,
                                        SchedulePattern{2, 20, 8, 3, 24, 1000, true},
                                        {2, 20, 1, 2, 600, 700, true},
                                        {2, 20, 8, 3, 1200, 2400, false}}) {
    shape.attention = blocks;
    for (const int window : {8, 20, 64, 700}) {
      shape.attention.window = window;
      const DecodeRoom most = MostRoom(shape, 3, 3000);
      for (int32_t position = 0; position < 3000; position += 1 + position / 97) {
        const std::vector<int32_t> positions = {position, 2999, 2999 - position};
        const DecodeRoom room = PlanDecode(shape, positions).room;
        ASSERT_TRUE(Fits(room.capacity, most.capacity)) << window << " " << position;
        ASSERT_LE(room.rows, most.rows);
        ASSERT_LE(room.pages, most.pages);
        ASSERT_LE(room.closing, most.closing);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DecodeStepTest,
    ::testing::Values(Setting{Schedule::kPaper, true, DType::kFloat32},
                      Setting{Schedule::kPaper, false, DType::kFloat32},
                      Setting{Schedule::kPaper, true, DType::kBFloat16},
                      Setting{Schedule::kPaper, true, DType::kFloat16},
                      Setting{Schedule::kBlocks, true, DType::kFloat32},
                      Setting{Schedule::kBlocksZeroMemory, true, DType::kFloat32},
                      Setting{Schedule::kBlocksZeroMemory, false, DType::kFloat32},
                      Setting{Schedule::kBlocksZeroMemory, true, DType::kBFloat16}));

}  // namespace
}  // namespace longview::kernels::cuda
