// The device's attention over random hostile plans: the reference kernel and the tensor-core tiles,
// emulated and on a GPU where there is one, against the CPU executor's reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "kernels/cuda/span/launch_shape.h"
#include "kernels/cuda/span/tensor_box.h"
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
  const bool tensor_cores = kernel == SpanKernel::kTiles || kernel == SpanKernel::kWarpgroups;
  if (element == Element::kFloat16) return tensor_cores ? 8e-3 : 4e-3;
  return tensor_cores ? 4e-2 : 2e-2;
}

// The case's plan, without biases for a kernel that takes none.
Plan PlanFor(SpanKernel kernel, const RandomCase& random) {
  Plan plan = random.plan();
  if (kernel == SpanKernel::kWarpgroups) {
    for (Span& span : plan.spans) span.bias = -1;
    plan.biases.clear();
  }
  return plan;
}

void CheckCase(uint32_t seed, Element element, SpanKernel kernel, TestDevice* device) {
  SCOPED_TRACE(device->name() + " " + Name(element) + " seed " + std::to_string(seed));
  const DType dtype = element == Element::kBFloat16 ? DType::kBFloat16 : DType::kFloat32;
  RandomCase random(seed, dtype);
  Tensor want(random.rows(), random.heads(), random.Dv(), dtype);
  const Call call = random.CallFor(DType::kFloat32, &want);
  const Plan plan = PlanFor(kernel, random);
  kernels::testing::RunChecked(plan, call, Isa::kScalar);
  // Images of exactly the plan's size, and of a larger capacity as recorded graphs use them.
  const PlanCapacity exact = CapacityOf(plan);
  DeviceCase on_device(plan, call, element, random.rows(), static_cast<Strides>(seed % 3),
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
    if (!device->Runs(kernel)) continue;
    for (uint32_t seed = 0; seed < 30 && !HasFailure(); ++seed) {
      CheckCase(seed, element, kernel, device.get());
    }
  }
}

std::string CaseName(const ::testing::TestParamInfo<std::tuple<Element, SpanKernel>>& info) {
  static constexpr const char* kKernels[] = {"Reference", "Tiles", "Rows", "Warpgroups"};
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
                                           std::tuple{Element::kFloat16, SpanKernel::kRows},
                                           std::tuple{Element::kBFloat16, SpanKernel::kWarpgroups},
                                           std::tuple{Element::kFloat16, SpanKernel::kWarpgroups}),
                         CaseName);

TEST(LaunchShapeTest, HeadsArePaddedAndSharedMemoryFits) {
  // Shared memory of a block at compute capability 8.6, the least of those served.
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

// A row's kernel must not depend on what else is in the batch.
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
    for (const bool warpgroups : {false, true}) {
      EXPECT_EQ(KernelOf(call, SpanPhase::kPrefill, warpgroups), SpanKernel::kTiles);
      EXPECT_EQ(KernelOf(call, SpanPhase::kDecode, warpgroups), SpanKernel::kRows);
    }
    const SpanLaunch a = ShapeLaunch(small, call, SpanKernel::kTiles);
    const SpanLaunch b = ShapeLaunch(large, call, SpanKernel::kTiles);
    EXPECT_EQ(a.kernel, b.kernel);
    EXPECT_EQ(a.padded_dim, 96);
    EXPECT_EQ(b.items, 100000);
    EXPECT_EQ(b.merges, 7);
  }
}

TEST(LaunchShapeTest, WarpgroupsTakeWholePanelsWithoutTables) {
  SpanCall call{};
  const auto chosen = [&](Element element, int dim) {
    call.element = element;
    call.Dk = dim;
    call.Dv = dim - 1;
    return KernelOf(call, SpanPhase::kPrefill, true) == SpanKernel::kWarpgroups;
  };
  for (const Element element : {Element::kBFloat16, Element::kFloat16}) {
    for (const int dim : {33, 64, 97, 128}) EXPECT_TRUE(chosen(element, dim));
    for (const int dim : {16, 32, 65, 96}) EXPECT_FALSE(chosen(element, dim));
  }
  EXPECT_FALSE(chosen(Element::kFloat32, 64));
  EXPECT_TRUE(chosen(Element::kBFloat16, 64));
  EXPECT_EQ(KernelOf(call, SpanPhase::kPrefill, false), SpanKernel::kTiles);
  const float table[1] = {};
  call.tables[1].data = table;
  EXPECT_FALSE(chosen(Element::kBFloat16, 64));
}

TEST(LaunchShapeTest, WarpgroupsOfSeveralBlocksShareAMultiprocessor) {
  constexpr int kHopperShared = 227 * 1024, kPerBlock = 1024;
  SpanCall call{};
  for (const int dim : {20, 64, 65, 128}) {
    call.element = Element::kBFloat16;
    call.Dk = call.Dv = dim;
    const SpanLaunch launch = ShapeLaunch({}, call, SpanKernel::kWarpgroups);
    EXPECT_EQ(launch.padded_dim, dim <= 64 ? 64 : 128);
    const int blocks = launch.padded_dim == 64 ? 3 : 2;
    EXPECT_LE(blocks * (launch.shared_bytes + kPerBlock), kHopperShared + kPerBlock);
  }
}

TEST(TensorBoxTest, SourcesOfOneTensorShareABoxAndOddOnesHaveNone) {
  alignas(16) static uint16_t memory[64];
  SpanCall call{};
  call.element = Element::kBFloat16;
  call.Dk = call.Dv = 40;
  call.H = 4;
  call.kv_group = 2;
  call.sources_used = 5;
  for (int s = 0; s < 5; ++s) {
    SpanSource& source = call.sources[s];
    source.k = source.v = memory;
    source.k_row_stride = source.v_row_stride = 80;
    source.k_head_stride = source.v_head_stride = 40;
  }
  call.sources[1].v = memory + 8;
  call.sources[2].k = memory + 1;
  call.sources[3].k_row_stride = 0;  // A constant row.
  call.sources[4].layout = Layout::kPaged;
  PrepareCall(&call, nullptr, 0);
  const CallBoxes boxes = BoxesOf(call);
  EXPECT_EQ(boxes.used, 3);
  EXPECT_EQ(boxes.boxes[0], (TensorBox{memory, 80, 160, 40, 2}));
  EXPECT_EQ(boxes.of.k[0], 0);
  EXPECT_EQ(boxes.of.v[0], 0);
  EXPECT_EQ(boxes.of.k[1], 0);
  EXPECT_EQ(boxes.of.v[1], 1);
  EXPECT_EQ(boxes.of.k[2], -1);
  EXPECT_EQ(boxes.of.k[3], -1);
  EXPECT_EQ(boxes.boxes[2], (TensorBox{memory, 80, 80, 40, 1}));
  EXPECT_EQ(boxes.of.k[4], 2);
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
