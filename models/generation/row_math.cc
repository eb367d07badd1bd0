#include "models/generation/row_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace longview::models {
namespace {

constexpr size_t kLanes = 16;

// 2^n e^r with n = round(x / ln 2) and |r| <= ln 2 / 2; ln 2 in two parts, the first short enough
// for exact products; the polynomial is the minimax one of Cephes' expf.
inline float Exponential(float x) {
  constexpr float kLeast = -87.0F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: the sum's low bits are the integer.
  const float clamped = x > kLeast ? x : kLeast;
  const float shifted = clamped * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = clamped - n * 0.693359375F + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const uint32_t power = (std::bit_cast<uint32_t>(shifted) << 23) + (127U << 23);
  const float value = p * std::bit_cast<float>(power);
  return x >= kLeast ? value : 0.0F;
}

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
