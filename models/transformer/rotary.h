// Rotary positions (Su et al. 2021) as HuggingFace computes them: roundings to fp32 are a part of
// the model, since at position 8,191 an angle's last bit is worth 5e-4.
#pragma once

#include <cstdint>
#include <vector>

namespace longview::models {

struct RotaryConfig {
  enum class Type { kDefault, kLinear, kYarn };

  Type type = Type::kDefault;
  double theta = 10000;
  double factor = 1;  // Linear, YaRN.
  // YaRN (Peng et al. 2023).
  double original_positions = 0;
  double beta_fast = 32, beta_slow = 1;
  double attention_factor = 1;  // Multiplies cosines and sines.

  friend bool operator==(const RotaryConfig&, const RotaryConfig&) = default;
};

// Per pair of a head's `dim` columns. REQUIRES: dim is even.
std::vector<float> RotaryFrequencies(const RotaryConfig& config, int dim);

// [positions, dim]: dim / 2 cosines, then dim / 2 sines, of each position's angles.
std::vector<float> RotaryAngles(const RotaryConfig& config, int64_t positions, int dim);

}  // namespace longview::models
