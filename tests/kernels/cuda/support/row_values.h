// Rows of numbers for tests of row kernels: drawn, uploaded in any type, and normed by
// definition.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda::testing {

inline std::vector<float> Random(size_t count, int seed, float size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, size);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Values as T holds them.
struct Elements {
  Elements(std::vector<float> floats, DType dtype) : dtype(dtype), values(std::move(floats)) {
    if (dtype == DType::kFloat32) return;
    bits = Rounded(values, dtype);
    values = Widened(bits, dtype);
  }
  void* Upload(TestDevice& device) const {
    if (dtype == DType::kFloat32) return device.Upload(values);
    return device.Upload(bits);
  }

  DType dtype;
  std::vector<float> values;
  std::vector<uint16_t> bits;
};

// The values in `memory`, widened.
inline std::vector<float> Download(TestDevice& device, const void* memory, size_t count,
                                   DType dtype) {
  if (dtype == DType::kFloat32) return device.Download(static_cast<const float*>(memory), count);
  return Widened(device.Download(static_cast<const uint16_t*>(memory), count), dtype);
}

// Runs a test body on every device in every type.
inline void OnAll(const std::function<void(TestDevice& device, DType dtype)>& body) {
  for (const auto& device : TestDevices()) {
    for (const DType dtype : kDeviceTypes) {
      SCOPED_TRACE(device->name() + ", " + TypeName(dtype));
      body(*device, dtype);
    }
  }
}

// Relative error of one rounding to dtype.
inline double Rounding(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-6 : dtype == DType::kBFloat16 ? 8e-3 : 1e-3;
}

// LayerNorm by definition.
inline std::vector<double> Normed(const std::vector<double>& x, const std::vector<float>& gamma,
                                  const std::vector<float>& beta, double eps) {
  double mean = 0, squares = 0;
  for (const double value : x) mean += value / static_cast<double>(x.size());
  for (const double value : x) squares += (value - mean) * (value - mean);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  std::vector<double> out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back((x[i] - mean) * factor * gamma[i] + beta[i]);
  return out;
}

}  // namespace longview::kernels::cuda::testing
