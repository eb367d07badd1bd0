// Contents of the cache after N tokens, read at once and one by one, against the fixtures' dumps
// (window, both forms of segments, sums of the open one), and the constants of zero memory.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>
#include <string>

#include "models/transformer_ls/cache_layout.h"
#include "tests/models/golden/golden_case.h"
#include "tests/models/transformer_ls/ls_case.h"

namespace longview::models {
namespace {

using kernels::kEarlyStrip;
using kernels::kLateStrip;
using kernels::kWindowStrip;

// Columns of hidden states: behind those of keys and values.
kernels::PoolState HiddenSums(const LsLmConfig& config, const kernels::PoolState& state) {
  const int64_t columns = config.columns();
  kernels::PoolState hidden;
  hidden.m = state.m + columns;
  hidden.s = state.s + columns;
  hidden.sums[0] = state.sums[0] + columns * config.head_dim();
  return hidden;
}

class LsCacheGolden : public testing::TestWithParam<std::string> {
 protected:
  LsCacheGolden() : golden_(GetParam(), "transformer_ls_lm"), model_(golden_.directory(), "fp32") {
    const std::vector<int64_t> wide = golden_.Integers("input_ids.0");
    ids_.assign(wide.begin(), wide.end());
  }

  const LsLmConfig& config() const { return model_.config(); }

  // Token counts the fixture has dumps of.
  std::set<int> Counts() const {
    std::set<int> counts;
    const std::regex pattern("cache\\.n([0-9]+)\\..*");
    for (const std::string& name : golden_.ExpectedNames()) {
      std::smatch match;
      if (std::regex_match(name, match, pattern)) counts.insert(std::stoi(match[1]));
    }
    return counts;
  }

  void Near(const std::vector<float>& got, const std::string& name) {
    const std::vector<double> want = golden_.ExpectedExactly(name);
    ASSERT_EQ(got.size(), want.size()) << name;
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isinf(want[i])) {
        ASSERT_EQ(got[i], want[i]) << name;
      } else {
        ASSERT_NEAR(got[i], want[i], golden_.tolerance("cache")) << name << " at " << i;
      }
    }
    ++compared_;
  }

  // Rows of the given slots, all heads side by side.
  void CompareRows(CachedSequence& sequence, int strip, int layer,
                   const std::vector<int64_t>& slots, const std::string& key_name,
                   const std::string& value_name) {
    const int dim = config().head_dim();
    std::vector<float> keys(slots.size() * config().width), values(keys.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      for (int head = 0; head < config().heads; ++head) {
        const size_t at = i * config().width + head * dim;
        model_.decoder().projection_cache().ReadRow(sequence.cache(), strip, layer, slots[i], head,
                                                    keys.data() + at, values.data() + at);
      }
    }
    Near(keys, key_name);
    Near(values, value_name);
  }

  void CompareSegments(CachedSequence& sequence, int strip, int layer, const std::string& prefix,
                       const std::string& suffix) {
    std::vector<int64_t> slots;
    for (const double segment : golden_.ExpectedExactly(prefix + "segment_index" + suffix)) {
      for (int k = 0; k < config().rank; ++k) {
        slots.push_back(static_cast<int64_t>(segment) * config().rank + k);
      }
    }
    CompareRows(sequence, strip, layer, slots, prefix + "segment_key" + suffix,
                prefix + "segment_value" + suffix);
  }

  // Columns of the sums are [h, r] and [h, r, dh]; dumps have [r, d].
  void CompareSums(const kernels::PoolState& state, int value, const std::string& name) {
    const int dim = config().head_dim(), rank = config().rank;
    std::vector<float> rows(static_cast<size_t>(rank * config().width));
    for (int head = 0; head < config().heads; ++head) {
      for (int k = 0; k < rank; ++k) {
        std::copy_n(state.sums[value] + (head * rank + k) * dim, dim,
                    rows.begin() + k * config().width + head * dim);
      }
    }
    Near(rows, name);
  }

  void CompareLayer(CachedSequence& sequence, int count, int layer) {
    const std::string prefix =
        "cache.n" + std::to_string(count) + ".layer" + std::to_string(layer) + ".";
    std::vector<int64_t> slots;
    for (int p = std::max(0, count - config().window); p < count; ++p) slots.push_back(p);
    CompareRows(sequence, kWindowStrip, layer, slots, prefix + "window_key",
                prefix + "window_value");
    if (config().schedule == LsSchedule::kBlocks) {
      CompareSegments(sequence, kLateStrip, layer, prefix, "_late");
      CompareSegments(sequence, kEarlyStrip, layer, prefix, "_pending");
      CompareSegments(sequence, kEarlyStrip, layer, prefix, "_early");
    } else {
      slots.clear();
      for (int s = 0; s < count / config().segment * config().rank; ++s) slots.push_back(s);
      CompareRows(sequence, kLateStrip, layer, slots, prefix + "segment_key",
                  prefix + "segment_value");
    }
    const kernels::PoolState state =
        model_.decoder().projection_cache().State(sequence.cache(), layer);
    Near({state.m, state.m + config().columns()}, prefix + "open_max");
    Near({state.s, state.s + config().columns()}, prefix + "open_sum");
    CompareSums(state, 0, prefix + "open_key");
    CompareSums(state, 1, prefix + "open_value");
    if (config().schedule == LsSchedule::kBlocks) {
      CompareSums(HiddenSums(config(), state), 0, prefix + "open_x");
    }
  }

  GoldenCase golden_;
  LsCase model_;
  std::vector<int32_t> ids_;
  int compared_ = 0;
};

TEST_P(LsCacheGolden, AfterNTokens) {
  if (Counts().empty()) GTEST_SKIP() << "no dumps";
  for (const int count : Counts()) {
    const std::span<const int32_t> text(ids_.data(), static_cast<size_t>(count));
    const auto whole = model_.New(), stepped = model_.New();
    model_.Read(*whole, text, WantedLogits::kNone);
    // The last tokens one by one, over at least one border of segments.
    const size_t tail = std::min<size_t>(text.size(), 40);
    if (tail < text.size()) {
      model_.Read(*stepped, text.first(text.size() - tail), WantedLogits::kNone);
    }
    model_.Step(*stepped, text.last(tail));
    for (const auto* sequence : {&whole, &stepped}) {
      for (int layer = 0; layer < config().layers; ++layer) {
        CompareLayer(static_cast<CachedSequence&>(**sequence), count, layer);
      }
    }
  }
  EXPECT_GT(compared_, 0);
}

TEST_P(LsCacheGolden, ZeroMemory) {
  if (!config().zero_memory) GTEST_SKIP() << "no zero memory";
  for (int layer = 0; layer < config().layers; ++layer) {
    const std::string prefix = "zero_memory.layer" + std::to_string(layer) + ".";
    const auto& rows = LmOf(model_.decoder()).weights().zero[layer];
    Near(rows[kLsWindowKey], prefix + "window_key");
    Near(rows[kLsWindowValue], prefix + "window_value");
    Near(rows[kLsSegmentKey], prefix + "segment_key");
    Near(rows[kLsSegmentValue], prefix + "segment_value");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LsCacheGolden,
    testing::ValuesIn(GoldenCase::Present(
        "transformer_ls_lm",
        {"paper_dh16_r1_l4_w8", "paper_dh32_r2_l16_w64", "paper_dh64_r4_l16_w24", "paper_long_3300",
         "paper_postln_relu_bias_l4_w10", "blocks_B32_M32_w32_l16", "blocks_B48_M16_w16_r2",
         "blocks_B8_M64_w16", "blocks_nozero_B16_M32", "blocks_postln_bias_B8_M16"})),
    [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
