#include "kernels/pool/performer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "kernels/base/bfloat16.h"

namespace longview::kernels {
namespace {

class Threads final : public ParallelFor {
 public:
  explicit Threads(int count) : count_(count) {}
  int threads() const override { return count_; }
  void Run(ThreadBody body, void* context) const override {
    std::vector<std::thread> running;
    for (int i = 0; i < count_; ++i) running.emplace_back(body, context, i);
    for (std::thread& thread : running) thread.join();
  }

 private:
  int count_;
};

struct Problem {
  Problem(int heads, int width, int features, std::vector<int32_t> image_offsets, float spread)
      : offsets(std::move(image_offsets)) {
    std::mt19937 random(heads * 100 + width);
    std::normal_distribution<float> normal(0, spread);
    const int64_t rows = offsets.back();
    qkv.resize(rows * 3 * heads * width);
    out.resize(rows * heads * width, -7);
    projection.resize(features * width);
    for (float& value : qkv) value = normal(random);
    for (float& value : projection) value = normal(random) / spread;
    call.q = qkv.data();
    call.k = qkv.data() + heads * width;
    call.v = qkv.data() + 2 * heads * width;
    call.out = out.data();
    call.row_stride = 3 * heads * width;
    call.out_row_stride = heads * width;
    call.heads = heads;
    call.width = width;
    call.features = features;
    call.projection = projection.data();
    call.offsets = offsets;
  }

  std::vector<float> Run(const ParallelFor& pool) {
    const WorkspaceBytes bytes = MeasurePerformer(call);
    std::vector<float> block(bytes.total(pool.threads()) / 4 + 32);
    void* at = block.data();
    size_t space = block.size() * 4;
    at = std::align(kAlignment, bytes.total(pool.threads()), at, space);
    RunPerformer(call, CarveWorkspace(at, bytes), pool);
    return out;
  }

  std::vector<int32_t> offsets;
  std::vector<float> qkv, out, projection;
  PerformerCall call;
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

TEST(PerformerTest, AnImageDoesNotDependOnItsCompanyOrThreads) {
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
