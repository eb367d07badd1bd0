// The loops over a whole vocabulary: largest element, exponentials. Written so that compilers
// vectorise them; results do not depend on how.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <span>

namespace longview::models {

struct RowPeak {
  int32_t id = 0;  // The lowest of equal ones.
  float value = 0;
  bool valid = true;  // No element is NaN.
};
// REQUIRES: not empty.
RowPeak FindPeak(std::span<const float> row);

// out[i] = exp(x[i]), within 2 units in the last place; 0 below -87. REQUIRES: no x above 87; the
// same size. `x` and `out` may be the same.
void Exponentials(std::span<const float> x, std::span<float> out);

// The sum of exp(row[i] - peak). REQUIRES: no element is above the peak.
double SumOfExponentials(std::span<const float> row, float peak);

}  // namespace longview::models
