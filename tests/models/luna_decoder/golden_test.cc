// Every causal case of golden/luna: logits of whole texts and of the same texts step by step,
// greedy continuations, the running sums of the first layer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "models/dense/compute_choice.h"
#include "models/generation/decoder/cached_sequence.h"
#include "models/luna_decoder/memory.h"
#include "tests/models/golden/golden_case.h"
#include "tests/models/luna_decoder/luna_case.h"

namespace longview::models {
namespace {

constexpr double kBf16Bound = 0.3;  // Logits have a standard deviation of 1.5.

std::vector<std::string> Cases() {
  std::vector<std::string> names = GoldenCase::Names("luna");
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("causal_"); });
  return names;
}

class LunaDecoderGolden : public testing::TestWithParam<std::string> {
 protected:
  std::vector<int32_t> Ids(int item) const {
    const std::vector<int64_t> wide = golden_.Integers("input_ids." + std::to_string(item));
    return {wide.begin(), wide.end()};
  }

  double Error(const std::vector<float>& logits, int item) const {
    return golden_.Difference(logits, golden_.Expected("logits." + std::to_string(item)), item);
  }

  const GoldenCase golden_{GetParam(), "luna"};
};

TEST_P(LunaDecoderGolden, WholeTextsAndStepByStep) {
  for (const std::string dtype : {"fp32", "bf16"}) {
    if (dtype == "bf16" && !ChooseCompute("bf16", "", "").value().notes.empty()) continue;
    LunaCase model(golden_.directory(), dtype);
    const double limit = dtype == "fp32" ? golden_.tolerance("logits") : kBf16Bound;
    double largest = 0;
    ASSERT_GT(golden_.items(), 0);
    for (int i = 0; i < golden_.items(); ++i) {
      const std::vector<int32_t> ids = Ids(i);
      const std::vector<float> whole = model.Read(*model.New(), ids);
      const double error = Error(whole, i);
      EXPECT_LE(error, limit) << dtype << " item " << i;
      EXPECT_LE(Error(model.Step(*model.New(), ids), i), limit)
          << dtype << " item " << i << " step by step";
      largest = std::max(largest, error);
    }
    std::printf("%-24s %s largest error %.2e\n", GetParam().c_str(), dtype.c_str(), largest);
  }
}

TEST_P(LunaDecoderGolden, GreedyContinuations) {
  LunaCase model(golden_.directory(), "fp32");
  for (int i = 0; i < golden_.items(); ++i) {
    const std::string name = "greedy.tokens." + std::to_string(i);
    if (!golden_.Expects(name)) continue;
    const auto sequence = model.New();
    std::vector<float> logits = model.Read(*sequence, Ids(i), WantedLogits::kLast);
    for (const int64_t want : golden_.ExpectedIntegers(name)) {
      const int32_t next = Greedy(logits);
      ASSERT_EQ(next, want) << name;
      if (sequence->tokens() == model.config().max_tokens) break;
      logits = model.Step(*sequence, {&next, 1});
    }
  }
}

// The running sums of the first layer, relative to their largest entry as the case says.
TEST_P(LunaDecoderGolden, StateAfterTheFirstText) {
  LunaCase model(golden_.directory(), "fp32");
  const auto sequence = model.New();
  model.Read(*sequence, Ids(0), WantedLogits::kNone);
  const float* state =
      LunaSums(model.decoder().projection_cache(), static_cast<CachedSequence&>(*sequence).cache());
  const LunaDecoderConfig& config = model.config();
  const int dim = config.head_dim(), rows = config.projected;
  std::vector<float> keys, values;
  for (int head = 0; head < config.heads; ++head) {
    for (int d = 0; d < dim; ++d) {
      for (int r = 0; r < rows; ++r) {
        keys.push_back(kernels::OuterKeySum(state, config.heads, dim, rows, head, d, r));
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int d = 0; d < dim; ++d) {
        values.push_back(kernels::OuterValueSum(state, config.heads, dim, rows, head, r, d));
      }
    }
  }
  const auto compare = [&](const std::vector<float>& got, const std::string& name) {
    const std::vector<double> want = golden_.Expected(name);
    double largest = 0;
    for (const double value : want) largest = std::max(largest, std::abs(value));
    EXPECT_LE(LargestDifference(got, want), 1e-4 * largest) << name;
  };
  compare(keys, "state.layer0.KA");
  compare(values, "state.layer0.AV");
}

INSTANTIATE_TEST_SUITE_P(Cases, LunaDecoderGolden, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
