#include "models/transformer/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace longview::models {
namespace {

// The pair, counted with fractions, that turns `rotations` times over the original positions.
double PairOfRotations(const RotaryConfig& config, int dim, double rotations) {
  return dim * std::log(config.original_positions / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(config.theta));
}

// Fast pairs keep their frequencies, slow ones are divided by the factor, others are blended.
void BlendYarn(const RotaryConfig& config, int dim, const std::vector<float>& powers,
               std::vector<float>& frequencies) {
  const double low = std::max(std::floor(PairOfRotations(config, dim, config.beta_fast)), 0.0);
  double high = std::min(std::ceil(PairOfRotations(config, dim, config.beta_slow)), dim - 1.0);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp =
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float keep = 1 - std::clamp(ramp, 0.0f, 1.0f);
    const float slowed = 1 / (static_cast<float>(config.factor) * powers[i]);
    frequencies[i] = slowed * (1 - keep) + frequencies[i] * keep;
  }
}

}  // namespace

std::vector<float> RotaryFrequencies(const RotaryConfig& config, int dim) {
  std::vector<float> powers, frequencies;
  for (int i = 0; i < dim; i += 2) {
    powers.push_back(static_cast<float>(std::pow(config.theta, static_cast<double>(i) / dim)));
    frequencies.push_back(1 / powers.back());
  }
  if (config.type == RotaryConfig::Type::kLinear) {
    for (float& frequency : frequencies) frequency /= static_cast<float>(config.factor);
  }
  if (config.type == RotaryConfig::Type::kYarn) BlendYarn(config, dim, powers, frequencies);
  return frequencies;
}

std::vector<float> RotaryAngles(const RotaryConfig& config, int64_t positions, int dim) {
  const std::vector<float> frequencies = RotaryFrequencies(config, dim);
  const auto factor = static_cast<float>(config.attention_factor);
  const size_t half = frequencies.size();
  std::vector<float> angles(static_cast<size_t>(positions) * 2 * half);
  for (int64_t position = 0; position < positions; ++position) {
    float* cosines = angles.data() + static_cast<size_t>(position) * 2 * half;
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      cosines[i] = static_cast<float>(std::cos(double{angle})) * factor;
      cosines[half + i] = static_cast<float>(std::sin(double{angle})) * factor;
    }
  }
  return angles;
}

}  // namespace longview::models
