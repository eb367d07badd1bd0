// Performer's attention on a device against its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/kernels/cuda/support/test_device.h"
#include "tests/kernels/support/performer_problem.h"

namespace longview::kernels::cuda {
namespace {

using testing::TestDevice;
using testing::TestDevices;

// Values that bfloat16 has; fp16 has them too, or nearly.
struct Problem : kernels::testing::PerformerProblem {
  Problem(int heads, int width, int features)
      : PerformerProblem(heads, width, features, {0, 1, 1, 24, 90}) {  // One image without rows.
    std::ranges::copy(testing::Widened(testing::Rounded(qkv, DType::kBFloat16), DType::kBFloat16),
                      qkv.begin());
  }

  // T is float or uint16_t, as `dtype` says. Images first .. last.
  template <typename T>
  std::vector<T> Run(TestDevice& device, const std::vector<T>& values, DType dtype, size_t first,
                     size_t last) const {
    const T* at = device.Upload(values);
    const std::vector<int32_t> some(offsets.begin() + first, offsets.begin() + last + 2);
    const auto images = static_cast<int32_t>(some.size() - 1);
    PerformerRows args = {};
    args.q = at;
    args.k = at + call.heads * call.width;
    args.v = at + 2 * call.heads * call.width;
    args.out = device.Upload(std::vector<T>(values.size() / 3));
    args.dtype = dtype;
    args.row_stride = call.row_stride;
    args.out_row_stride = call.out_row_stride;
    args.heads = call.heads;
    args.width = call.width;
    args.features = call.features;
    args.projection = device.Upload(projection);
    args.offsets = device.Upload(some);
    args.images = images;
    args.longest = 66;
    const auto heads = static_cast<size_t>(images) * call.heads;
    args.tops = device.Allocate<float>(heads);
    args.sums = device.Allocate<float>(heads * call.features * (call.width + 1));
    EXPECT_EQ(device.api().performer.run(device.stream(), args), 0);
    return device.Download(static_cast<const T*>(args.out), values.size() / 3);
  }
};

TEST(DevicePerformerTest, IsItsDefinitionAndImagesDoNotDependOnBatchMates) {
  for (const auto& [heads, width, features] :
       {std::tuple{1, 1, 1}, {3, 16, 8}, {2, 7, 33}, {2, 64, 64}}) {
    SCOPED_TRACE(std::to_string(width) + " wide, features " + std::to_string(features));
    const Problem problem(heads, width, features);
    RunPerformerRef(problem.call);
    const std::vector<float>& expected = problem.out;
    for (const auto& device : TestDevices()) {
      SCOPED_TRACE(device->name());
      const std::vector<float> got = problem.Run(*device, problem.qkv, DType::kFloat32, 0, 3);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], expected[i], 3e-5 * (1 + std::abs(expected[i]))) << i;
      }
      const std::vector<float> last = problem.Run(*device, problem.qkv, DType::kFloat32, 3, 3);
      const auto begin = static_cast<ptrdiff_t>(24 * heads * width);
      EXPECT_TRUE(std::equal(last.begin() + begin, last.end(), got.begin() + begin));
      for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
        const double bound = dtype == DType::kBFloat16 ? 0.01 : 0.002;
        const std::vector<float> rounded = testing::Widened(
            problem.Run(*device, testing::Rounded(problem.qkv, dtype), dtype, 0, 3), dtype);
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(rounded[i], expected[i], bound * (1 + std::abs(expected[i]))) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
