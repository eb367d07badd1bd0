// Performer's attention on a device against its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "kernels/base/bfloat16.h"
#include "kernels/pool/performer.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda {
namespace {

using testing::TestDevice;
using testing::TestDevices;

struct Problem {
  Problem(int heads, int width, int features) : heads(heads), width(width), features(features) {
    std::mt19937 random(heads * 100 + width);
    std::normal_distribution<float> normal(0, 1);
    qkv.resize(static_cast<size_t>(offsets.back()) * 3 * heads * width);
    projection.resize(static_cast<size_t>(features) * width);
    for (float& value : qkv) value = BFloat16ToFloat(FloatToBFloat16(normal(random)));
    for (float& value : projection) value = normal(random);
    for (const float value : qkv) bits.push_back(FloatToBFloat16(value));
  }

  std::vector<float> Expected() const {
    std::vector<float> out(qkv.size() / 3);
    PerformerCall call;
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
    RunPerformerRef(call);
    return out;
  }

  // T is float or uint16_t, a bfloat16. Images first .. last.
  template <typename T>
  std::vector<T> Run(TestDevice& device, const std::vector<T>& values, size_t first,
                     size_t last) const {
    const T* at = device.Upload(values);
    const std::vector<int32_t> some(offsets.begin() + first, offsets.begin() + last + 2);
    const auto images = static_cast<int32_t>(some.size() - 1);
    PerformerRows args = {};
    args.q = at;
    args.k = at + heads * width;
    args.v = at + 2 * heads * width;
    args.out = device.Upload(std::vector<T>(values.size() / 3));
    args.dtype = sizeof(T) == 4 ? DType::kFloat32 : DType::kBFloat16;
    args.row_stride = 3 * heads * width;
    args.out_row_stride = heads * width;
    args.heads = heads;
    args.width = width;
    args.features = features;
    args.projection = device.Upload(projection);
    args.offsets = device.Upload(some);
    args.images = images;
    args.longest = 66;
    args.tops = device.Allocate<float>(static_cast<size_t>(images) * heads);
    args.sums =
        device.Allocate<float>(static_cast<size_t>(images) * heads * features * (width + 1));
    EXPECT_EQ(device.api().performer.run(device.stream(), args), 0);
    return device.Download(static_cast<const T*>(args.out), values.size() / 3);
  }

  const int heads, width, features;
  const std::vector<int32_t> offsets = {0, 1, 1, 24, 90};  // One image without rows.
  std::vector<float> qkv, projection;
  std::vector<uint16_t> bits;
};

TEST(DevicePerformerTest, IsItsDefinitionAndImagesDoNotMindTheirCompany) {
  for (const auto& [heads, width, features] :
       {std::tuple{1, 1, 1}, {3, 16, 8}, {2, 7, 33}, {2, 64, 64}}) {
    SCOPED_TRACE(std::to_string(width) + " wide, features " + std::to_string(features));
    const Problem problem(heads, width, features);
    const std::vector<float> expected = problem.Expected();
    for (const auto& device : TestDevices()) {
      SCOPED_TRACE(device->name());
      const std::vector<float> got = problem.Run(*device, problem.qkv, 0, 3);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], expected[i], 3e-5 * (1 + std::abs(expected[i]))) << i;
      }
      const std::vector<float> last = problem.Run(*device, problem.qkv, 3, 3);
      const auto begin = static_cast<ptrdiff_t>(24 * heads * width);
      EXPECT_TRUE(std::equal(last.begin() + begin, last.end(), got.begin() + begin));
      const std::vector<uint16_t> rounded = problem.Run(*device, problem.bits, 0, 3);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(BFloat16ToFloat(rounded[i]), expected[i], 0.01 * (1 + std::abs(expected[i])));
      }
    }
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
