#include "kernels/pool/performer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "tests/kernels/support/performer_problem.h"
#include "tests/kernels/support/run.h"

namespace longview::kernels {
namespace {

using testing::Threads;

struct Problem : testing::PerformerProblem {
  using PerformerProblem::PerformerProblem;

  std::vector<float> Run(const ParallelFor& pool) {
    const WorkspaceBytes bytes = MeasurePerformer(call);
    std::vector<float> block(bytes.total(pool.threads()) / 4 + 32);
    void* at = block.data();
    size_t space = block.size() * 4;
    at = std::align(kAlignment, bytes.total(pool.threads()), at, space);
    RunPerformer(call, CarveWorkspace(at, bytes), pool);
    return out;
  }
};

TEST(PerformerTest, IsTheReference) {
  for (const float spread : {0.3f, 1.0f, 3.0f}) {
    for (const auto& [heads, width, features] :
         {std::tuple{1, 1, 1}, {3, 16, 8}, {2, 7, 33}, {4, 64, 64}}) {
      Problem problem(heads, width, features, {0, 1, 1, 24, 90}, spread);
      const std::vector<float> got = problem.Run(SerialFor());
      RunPerformerRef(problem.call);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], problem.out[i], 2e-5 * (1 + std::abs(problem.out[i]))) << i;
      }
    }
  }
}

TEST(PerformerTest, AnImageDoesNotDependOnBatchMatesOrThreads) {
  Problem together(2, 16, 24, {0, 30, 75}, 1);
  const std::vector<float> serial = together.Run(SerialFor());
  EXPECT_EQ(together.Run(Threads(3)), serial);
  const std::vector<int32_t> second = {30, 75};
  together.call.offsets = second;
  std::fill(together.out.begin(), together.out.end(), 0.0f);
  const std::vector<float> alone = together.Run(SerialFor());
  EXPECT_TRUE(std::equal(alone.begin() + 30 * 32, alone.end(), serial.begin() + 30 * 32));
}

TEST(PerformerTest, Bf16IsRounded) {
  Problem problem(2, 16, 16, {0, 20}, 1);
  std::vector<uint16_t> qkv(problem.qkv.size()), out(problem.out.size()), expected(out.size());
  for (size_t i = 0; i < qkv.size(); ++i) qkv[i] = FloatToBFloat16(problem.qkv[i]);
  problem.call.dtype = DType::kBFloat16;
  problem.call.q = qkv.data();
  problem.call.k = qkv.data() + 32;
  problem.call.v = qkv.data() + 64;
  problem.call.out = out.data();
  problem.Run(SerialFor());
  problem.call.out = expected.data();
  RunPerformerRef(problem.call);
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_NEAR(BFloat16ToFloat(out[i]), BFloat16ToFloat(expected[i]), 0.01) << i;
  }
}

}  // namespace
}  // namespace longview::kernels
