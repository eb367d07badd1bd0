#include "models/luna/weight_forms.h"

#include <cmath>

namespace longview::models {

std::vector<float> Sinusoids(int64_t rows, int64_t width) {
  const int64_t half = width / 2;
  const auto step = static_cast<float>(std::log(10000.0) / static_cast<double>(half - 1));
  std::vector<float> table(static_cast<size_t>(rows * width));
  for (int64_t p = 0; p < rows; ++p) {
    float* row = table.data() + p * width;
    for (int64_t i = 0; i < half; ++i) {
      const float frequency = std::exp(static_cast<float>(i) * -step);
      const float angle = static_cast<float>(p) * frequency;
      row[i] = std::sin(angle);
      row[half + i] = std::cos(angle);
    }
  }
  return table;
}

}  // namespace longview::models
