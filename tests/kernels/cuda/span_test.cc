// The device's attention over random hostile plans: the reference kernel and the tensor-core tiles,
// emulated and on a GPU where there is one, against the CPU executor's reference.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "kernels/cuda/span/launch_shape.h"
#include "tests/kernels/cuda/support/device_case.h"
#include "tests/kernels/support/random_plan.h"
#include "tests/kernels/support/run.h"

namespace longview::kernels::cuda {
namespace {

using kernels::testing::RandomCase;
using kernels::testing::Tensor;
using testing::DeviceCase;
using testing::Strides;
using testing::TestDevice;

const char* Name(Element element) {
  return element == Element::kFloat32 ? "fp32" : element == Element::kBFloat16 ? "bf16" : "fp16";
}

// Largest difference to the CPU's reference, on values of size 1.
double ToleranceOf(Element element, SpanKernel kernel) {
  if (element == Element::kFloat32) return 2e-5;
  if (element == Element::kFloat16) return kernel == SpanKernel::kTiles ? 8e-3 : 4e-3;
  return kernel == SpanKernel::kTiles ? 4e-2 : 2e-2;
}

void CheckCase(uint32_t seed, Element element, SpanKernel kernel, TestDevice* device) {
  SCOPED_TRACE(device->name() + " " + Name(element) + " seed " + std::to_string(seed));
  const DType dtype = element == Element::kBFloat16 ? DType::kBFloat16 : DType::kFloat32;
  RandomCase random(seed, dtype);
  Tensor want(random.rows(), random.heads(), random.Dv(), dtype);
  const Call call = random.CallFor(DType::kFloat32, &want);
  kernels::testing::RunChecked(random.plan(), call, Isa::kScalar);
  // Images of exactly the plan's size, and of a larger capacity as recorded graphs use them.
  const PlanCapacity exact = CapacityOf(random.plan());
  DeviceCase on_device(random.plan(), call, element, random.rows(), static_cast<Strides>(seed % 3),
                       seed % 2 == 0 ? exact : RoundedUp(exact), device);
  on_device.Run(kernel);
  const std::vector<float> got = on_device.Output();
  ASSERT_EQ(got.size(), want.elements());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want.Get(i), ToleranceOf(element, kernel)) << "element " << i;
  }
}

class SpanTest : public ::testing::TestWithParam<std::tuple<Element, SpanKernel>> {};

TEST_P(SpanTest, EqualsTheReferenceOnRandomPlans) {
  const auto [element, kernel] = GetParam();
  for (const auto& device : testing::TestDevices()) {
    for (uint32_t seed = 0; seed < 30 && !HasFatalFailure(); ++seed) {
      CheckCase(seed, element, kernel, device.get());
    }
  }
}

std::string CaseName(const ::testing::TestParamInfo<std::tuple<Element, SpanKernel>>& info) {
  static constexpr const char* kKernels[] = {"Reference", "Tiles", "Rows"};
  return std::string(Name(std::get<0>(info.param))) +
         kKernels[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(Kernels, SpanTest,
                         ::testing::Values(std::tuple{Element::kFloat32, SpanKernel::kReference},
                                           std::tuple{Element::kBFloat16, SpanKernel::kReference},
                                           std::tuple{Element::kFloat16, SpanKernel::kReference},
                                           std::tuple{Element::kFloat32, SpanKernel::kTiles},
                                           std::tuple{Element::kBFloat16, SpanKernel::kTiles},
                                           std::tuple{Element::kFloat16, SpanKernel::kTiles},
                                           std::tuple{Element::kFloat32, SpanKernel::kRows},
                                           std::tuple{Element::kBFloat16, SpanKernel::kRows},
                                           std::tuple{Element::kFloat16, SpanKernel::kRows}),
                         CaseName);

TEST(LaunchShapeTest, HeadsArePaddedAndSharedMemoryFits) {
  // What compute capability 8.6 gives a block, the least of those served.
  constexpr int kLeastShared = 99 * 1024;
  for (int Dk = 1; Dk <= kMaxHeadDim; ++Dk) {
    for (const int Dv : {1, 31, 64, 65, 128}) {
      const int padded = PaddedDim(Dk, Dv);
      EXPECT_GE(padded, std::max(Dk, Dv));
      EXPECT_LT(padded - std::max(Dk, Dv), 32);
      // Two stages of K and V, and nothing more than the padding against bank conflicts.
      EXPECT_EQ(SharedBytes(Element::kBFloat16, padded, false), 2 * 2 * 64 * (padded + 8) * 2);
      for (const Element element : {Element::kFloat16, Element::kFloat32}) {
        EXPECT_LE(SharedBytes(element, padded, true), kLeastShared);
      }
    }
  }
}

// Which kernel runs a row must not depend on what else is in the batch.
TEST(LaunchShapeTest, KernelIsAPropertyOfTheCall) {
  SpanCall call{};
  call.Dk = 40;
  call.Dv = 72;
  for (const Element element : {Element::kFloat32, Element::kBFloat16, Element::kFloat16}) {
    call.element = element;
    PlanCapacity small, large;
    small.items = 1;
    large.items = 100000;
    large.merges = 7;
    const SpanLaunch a = ShapeLaunch(small, call), b = ShapeLaunch(large, call);
    EXPECT_EQ(a.kernel, b.kernel);
    EXPECT_EQ(a.kernel, SpanKernel::kTiles);
    EXPECT_EQ(ShapeLaunch(large, call, SpanPhase::kDecode).kernel, SpanKernel::kRows);
    EXPECT_EQ(a.padded_dim, 96);
    EXPECT_EQ(b.items, 100000);
    EXPECT_EQ(b.merges, 7);
  }
}

TEST(PrepareCallTest, LooksAtEveryStrideAndStart) {
  alignas(16) static uint16_t memory[64];
  SpanCall call{};
  call.element = Element::kBFloat16;
  call.q = memory;
  call.out = memory + 1;
  call.q_row_stride = 24;
  call.q_head_stride = 12;
  call.out_row_stride = 24;
  call.out_head_stride = 12;
  call.Dk = call.Dv = 12;
  call.sources_used = 4;
  for (int s = 0; s < 4; ++s) {
    SpanSource& source = call.sources[s];
    source.k = source.v = memory;
    source.k_row_stride = source.v_row_stride = 24;
    source.k_head_stride = source.v_head_stride = 16;
  }
  call.sources[1].v_head_stride = 12;
  call.sources[2].k = memory + 2;
  call.sources[3].layout = Layout::kPaged;
  PrepareCall(&call, nullptr, 0);
  EXPECT_EQ(call.q_pairs, 1);
  EXPECT_EQ(call.out_pairs, 0);
  EXPECT_EQ(call.sources[0].pieces, 1);
  EXPECT_EQ(call.sources[1].pieces, 0);
  EXPECT_EQ(call.sources[2].pieces, 0);
  EXPECT_EQ(call.sources[3].pieces, 1);
  EXPECT_EQ(call.sources[3].k_row_stride, 16);
  EXPECT_EQ(call.sources[3].k_head_stride, 64 * 16);
}

}  // namespace
}  // namespace longview::kernels::cuda
