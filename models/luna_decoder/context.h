// What every step of one generating Luna model shares.
#pragma once

#include "models/luna/weights.h"
#include "models/luna_decoder/config.h"
#include "models/luna_decoder/states.h"
#include "models/luna_decoder/weights.h"

namespace longview::models {

// Borrowed. States change between steps, on the executor's thread; all else is constant.
struct LunaDecoderContext : ModelContext<LunaDecoderConfig, LunaDecoderWeights> {
  LunaDecoderContext() = default;
  LunaDecoderContext(const Config& config, const Weights& weights, Compute compute,
                     const kernels::ParallelFor& pool)
      : ModelContext(config, weights, compute, pool) {
    isa = kernels::BestFloatIsa();  // Of RunningOuter, which is float in both types.
  }

  LunaStates* states = nullptr;
  const LunaContext* encoder = nullptr;  // Of translation models.
};

// Rows that attention over a document keeps of each of its rows: a key and a value, or one for
// both.
inline int KeyParts(const LunaDecoderConfig& config) { return config.tied_kv ? 1 : 2; }

}  // namespace longview::models
