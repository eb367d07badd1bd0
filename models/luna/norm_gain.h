// LayerNorm weights that a checkpoint stores in another form (revisions of the published code).
#pragma once

#include <cmath>

#include "models/layers/weight_loader.h"
#include "models/luna/config_keys.h"

namespace longview::models {

inline void ApplyNormGain(LunaNormGain gain, Norm& norm) {
  for (float& gamma : norm.gamma) {
    if (gain == LunaNormGain::kOnePlus) gamma += 1;
    if (gain == LunaNormGain::kTwoSigmoid) gamma = 2 / (1 + std::exp(-gamma));
  }
}

}  // namespace longview::models
