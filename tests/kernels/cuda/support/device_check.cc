#include "tests/kernels/cuda/support/device_check.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>

#include "kernels/cuda/span/launch_shape.h"
#include "tests/kernels/cuda/support/device_case.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda::testing {
namespace {

// check.h plans with the same.
static_assert(kDeviceTileRows == kMaxTileRows);

struct Way {
  const char* name;
  Element element;
  double tolerance;
  SpanKernel kernel = SpanKernel::kTiles;
};

// Inputs rounded to fp16 move scores of size 10 by a thousandth or two.
constexpr Way kFloatWays[] = {
    {"fp32 tiles", Element::kFloat32, 2e-5},
    {"fp16 tiles", Element::kFloat16, 2e-2},
    {"fp16 warpgroups", Element::kFloat16, 2e-2, SpanKernel::kWarpgroups}};
constexpr Way kBFloat16Ways[] = {
    {"bf16 tiles", Element::kBFloat16, 4e-2},
    {"bf16 warpgroups", Element::kBFloat16, 4e-2, SpanKernel::kWarpgroups}};

}  // namespace

void CheckOnDevice(const Plan& plan, const Call& call, int rows_of_q, const std::vector<int>& rows,
                   const std::vector<std::vector<double>>& wanted) {
  if (call.sources.size() > kMaxDeviceSources) return;
  static const std::vector<std::unique_ptr<TestDevice>> devices = TestDevices();
  const std::span<const Way> ways = call.dtype == DType::kFloat32
                                        ? std::span<const Way>(kFloatWays)
                                        : std::span<const Way>(kBFloat16Ways);
  for (const Way& way : ways) {
    const bool biased = !plan.biases.empty() && way.kernel == SpanKernel::kWarpgroups;
    if (biased || !devices.back()->Runs(way.kernel)) continue;
    SCOPED_TRACE(devices.back()->name() + " " + way.name);
    DeviceCase on_device(plan, call, way.element, rows_of_q, Strides::kPieces, CapacityOf(plan),
                         devices.back().get());
    on_device.Run(way.kernel);
    const std::vector<float> got = on_device.Output();
    size_t next = 0;
    for (const int row : rows) {
      for (int h = 0; h < call.H; ++h) {
        const std::vector<double>& want = wanted[next++];
        for (int d = 0; d < call.Dv; ++d) {
          ASSERT_NEAR(got[(int64_t{row} * call.H + h) * call.Dv + d], want[d], way.tolerance)
              << "row " << row << " head " << h << " d " << d;
        }
      }
    }
  }
}

}  // namespace longview::kernels::cuda::testing
