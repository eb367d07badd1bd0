// What every step of one generating Luna model shares.
#pragma once

#include "kernels/base/cpu_features.h"
#include "kernels/base/parallel.h"
#include "models/luna/buffers.h"
#include "models/luna_decoder/config.h"
#include "models/luna_decoder/states.h"
#include "models/luna_decoder/weights.h"

namespace longview::models {

// Borrowed. States change between steps, on the executor's thread; all else is constant.
struct LunaDecoderContext {
  const LunaDecoderConfig* config = nullptr;
  const LunaDecoderWeights* weights = nullptr;
  LunaStates* states = nullptr;
  const LunaContext* encoder = nullptr;  // Of translation models.
  Compute compute = Compute::kFp32;
  kernels::Isa isa = kernels::Isa::kScalar;  // Of RunningOuter, which is float in both types.
  const kernels::ParallelFor* pool = nullptr;
};

}  // namespace longview::models
