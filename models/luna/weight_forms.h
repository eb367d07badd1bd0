// Weights that Luna's published code makes, or that it stores in another form.
// Thread-safe: pure functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "models/layers/weight_loader.h"
#include "models/luna/config_keys.h"

namespace longview::models {

// fairseq's sinusoidal positions (SinusoidalPositionalEmbedding), [rows, width]: row p holds the
// sines of p f_i, then the cosines, f_i = 10000^(-i / (h - 1)) for i < h = width / 2; an odd width
// ends with a zero. In float32 step by step, as the tables were made: double precision differs by
// 5e-4 at p = 16000.
std::vector<float> Sinusoids(int64_t rows, int64_t width);

// LayerNorm weights by the form in which the published code's revisions store them.
inline void ApplyNormGain(LunaNormGain gain, Norm& norm) {
  for (float& gamma : norm.gamma) {
    if (gain == LunaNormGain::kOnePlus) gamma += 1;
    if (gain == LunaNormGain::kTwoSigmoid) gamma = 2 / (1 + std::exp(-gamma));
  }
}

}  // namespace longview::models
