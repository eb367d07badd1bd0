#include "models/generation/sampling/row_math.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/base/exponential.h"

namespace longview::models {
namespace {

using kernels::Exponential;

constexpr size_t kLanes = 16;

}  // namespace

RowPeak FindPeak(std::span<const float> row) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  std::array<float, kLanes> best;
  std::array<uint32_t, kLanes> broken{};
  best.fill(kLowest);
  size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float x = row[i + lane];
      best[lane] = x > best[lane] ? x : best[lane];
      broken[lane] |= static_cast<uint32_t>(x != x);
    }
  }
  for (; i < row.size(); ++i) {
    best[0] = row[i] > best[0] ? row[i] : best[0];
    broken[0] |= static_cast<uint32_t>(row[i] != row[i]);
  }
  RowPeak peak;
  peak.value = *std::max_element(best.begin(), best.end());
  peak.valid = std::all_of(broken.begin(), broken.end(), [](uint32_t lane) { return lane == 0; });
  const auto first = std::find(row.begin(), row.end(), peak.value);
  peak.id = first == row.end() ? 0 : static_cast<int32_t>(first - row.begin());
  return peak;
}

void Exponentials(std::span<const float> x, std::span<float> out) {
  for (size_t i = 0; i < x.size(); ++i) out[i] = Exponential(x[i]);
}

double SumOfExponentials(std::span<const float> row, float peak) {
  std::array<float, kLanes> block;
  std::array<double, kLanes> sums{};
  size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) block[lane] = Exponential(row[i + lane] - peak);
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += block[lane];
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  for (; i < row.size(); ++i) sum += Exponential(row[i] - peak);
  return sum;
}

}  // namespace longview::models
