// Properties that follow from the definition, on models made from a fixture's weights: causality,
// reach of the window, what a schedule changes and what it must not, extreme scores, rollback.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "tests/models/golden/edited_model.h"
#include "tests/models/golden/golden_case.h"
#include "tests/models/transformer_ls/ls_case.h"

namespace longview::models {
namespace {

constexpr double kClose = 2e-5, kApart = 1e-3;

// The weights of a fixture with d = 32, h = 2, r = 1, l = 4, w = 16.
class LsProperties : public ::testing::Test {
 protected:
  LsProperties() : edited_(GoldenCase("paper_fp16_file", "transformer_ls_lm")) {
    for (const char* key : {"block_len", "mem_len", "zero_memory"}) edited_.config.erase(key);
    std::mt19937 random(1);
    for (int i = 0; i < 160; ++i) text_.push_back(static_cast<int32_t>(random() % 256));
  }

  std::unique_ptr<LsCase> Load() {
    EXPECT_TRUE(edited_.Load().ok()) << edited_.Load().status();
    return std::make_unique<LsCase>(edited_.directory(), "fp32");
  }

  void UseBlocks(int block, int memory, const std::string& zero) {
    edited_.config["schedule"] = "blocks";
    edited_.config["block_len"] = block;
    edited_.config["mem_len"] = memory;
    edited_.config["zero_memory"] = zero;
  }

  // One head of rank 2 has the same tensors as two heads of rank 1, but for the biases' shapes.
  void UseOneHead() {
    edited_.config["n_head"] = 1;
    edited_.config["chunk_rank"] = 2;
    for (auto& [name, tensor] : edited_.tensors) {
      if (name.ends_with("r_r_bias")) tensor.shape = {1, 1, 1, 32};
      if (name.ends_with("r_w_bias")) tensor.shape = {1, 1, 1, 1, 32};
    }
  }

  void UseOneLayer() {
    edited_.config["n_layer"] = 1;
    std::erase_if(edited_.tensors, [](const auto& tensor) {
      return tensor.first.find(".layers.1.") != std::string::npos;
    });
  }

  std::vector<float> Logits(const std::vector<int32_t>& text) {
    const auto model = Load();
    return model->Read(*model->New(), text);
  }

  static double Distance(const std::vector<float>& a, const std::vector<float>& b, int row,
                         int vocab = 256) {
    double largest = 0;
    for (int i = row * vocab; i < (row + 1) * vocab; ++i) {
      largest = std::max(largest, std::abs(double{a[i]} - b[i]));
    }
    return largest;
  }
  static double Distance(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(double{a[i]} - b[i]));
    }
    return largest;
  }

  EditedModel edited_;
  std::vector<int32_t> text_;
};

TEST_F(LsProperties, TokensChangeNothingBeforeThem) {
  const std::vector<float> before = Logits(text_);
  std::vector<int32_t> changed = text_;
  changed[70] ^= 1;
  const std::vector<float> after = Logits(changed);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 70 * 256, after.begin()));
  for (const int t : {70, 71, 85, 90, 159}) EXPECT_GT(Distance(before, after, t), 1e-6) << t;
}

// Segments whose keys and values are a constant leave a single layer nothing but its window.
TEST_F(LsProperties, TheWindowReachesExactlyItsLength) {
  UseOneLayer();
  for (const char* part : {"weight", "bias"}) {
    auto& values =
        edited_.tensors[std::string("decoder.model.layers.0.attn.dual_ln_dproj.") + part].values;
    std::fill(values.begin(), values.end(), 0.0f);
  }
  const std::vector<float> before = Logits(text_);
  std::vector<int32_t> changed = text_;
  changed[40] ^= 1;
  const std::vector<float> after = Logits(changed);
  EXPECT_GT(Distance(before, after, 40 + 15), 1e-6);
  EXPECT_EQ(Distance(before, after, 40 + 16), 0.0);
}

TEST_F(LsProperties, WithOneHeadAndNothingForgottenBlocksDoNotMatter) {
  UseOneHead();
  const std::vector<float> paper = Logits(text_);
  for (const int block : {4, 8, 16, 60, 256}) {
    UseBlocks(block, 512, "none");
    EXPECT_LT(Distance(Logits(text_), paper), kClose) << block;
  }
}

TEST_F(LsProperties, WithTwoHeadsBlocksMatterFromTheirFirstBorderOn) {
  UseBlocks(16, 512, "none");
  const std::vector<float> small = Logits(text_);
  UseBlocks(256, 512, "none");
  const std::vector<float> large = Logits(text_);
  for (int t = 0; t < 16; ++t) EXPECT_LT(Distance(small, large, t), kClose) << t;
  for (int t = 16; t < 24; ++t) EXPECT_GT(Distance(small, large, t), kApart / 10) << t;
}

TEST_F(LsProperties, EqualTokensOfASegmentMakeBothFormsEqual) {
  UseOneLayer();
  const std::vector<int32_t> text(96, 65);
  UseBlocks(8, 512, "none");
  const std::vector<float> small = Logits(text);
  UseBlocks(128, 512, "none");
  EXPECT_LT(Distance(small, Logits(text)), kClose);
}

TEST_F(LsProperties, ZeroMemoryIsSeenFromTheFirstTokenOn) {
  UseBlocks(16, 16, "reference");
  const std::vector<float> some = Logits(text_);
  UseBlocks(16, 64, "reference");
  EXPECT_GT(Distance(some, Logits(text_), 0), kApart);
}

TEST_F(LsProperties, TheBiasOfSegmentScoresCancels) {
  const std::vector<float> before = Logits(text_);
  for (auto& [name, tensor] : edited_.tensors) {
    if (!name.ends_with("dconv_1.bias")) continue;
    for (size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] += 3.0f + i;
  }
  EXPECT_LT(Distance(before, Logits(text_)), kClose);
}

TEST_F(LsProperties, ExtremeSegmentScoresStayStable) {
  for (auto& [name, tensor] : edited_.tensors) {
    if (!name.ends_with("dconv_1.weight")) continue;
    for (float& value : tensor.values) value *= 1e4f;
  }
  const auto model = Load();
  const std::vector<float> whole = model->Read(*model->New(), text_);
  EXPECT_TRUE(std::all_of(whole.begin(), whole.end(), [](float x) { return std::isfinite(x); }));
  const auto stepped = model->New();
  EXPECT_LT(Distance(whole, model->Step(*stepped, text_)), 1e-3);
}

TEST_F(LsProperties, ASegmentMayBeOneTokenAndLengthsNeedNotDivide) {
  for (const int segment : {1, 3, 7}) {
    edited_.config["chunk_size"] = segment;
    const auto model = Load();
    for (const int tokens : {1, 2, 15, 16, 17, 63, 64, 65, 150}) {
      const std::span<const int32_t> text(text_.data(), static_cast<size_t>(tokens));
      const std::vector<float> whole = model->Read(*model->New(), text);
      const auto stepped = model->New();
      EXPECT_LT(Distance(whole, model->Step(*stepped, text)), kClose) << segment << " " << tokens;
    }
  }
}

TEST_F(LsProperties, AStateGoesBackToWhereItWasForked) {
  const auto model = Load();
  const std::span<const int32_t> text(text_);
  const auto sequence = model->New();
  model->Read(*sequence, text.first(61));
  const auto snapshot = sequence->Fork();
  const std::vector<float> once = model->Step(*sequence, text.subspan(61, 40));
  EXPECT_EQ(model->Step(*snapshot, text.subspan(61, 40)), once);
}

// fp16 frequencies of the file against exact ones: a phase error that grows with the distance.
TEST_F(LsProperties, TheFilesFrequenciesCount) {
  std::mt19937 random(2);
  std::vector<int32_t> text;
  for (int i = 0; i < 3000; ++i) text.push_back(static_cast<int32_t>(random() % 256));
  const std::vector<float> stored = Logits(text);
  edited_.config["inv_freq"] = "exact";
  const std::vector<float> exact = Logits(text);
  EXPECT_LT(Distance(stored, exact, 3), Distance(stored, exact, 2999));
  EXPECT_GT(Distance(stored, exact, 2999), kApart);
  edited_.tensors.erase("decoder.model.pos_emb.inv_freq");
  edited_.config["inv_freq"] = "from_file";
  EXPECT_EQ(Logits(text), exact);
}

}  // namespace
}  // namespace longview::models
