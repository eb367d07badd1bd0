// The parts that all steps and documents of one generating Luna model share.
#pragma once

#include "kernels/cache/cache_budget.h"
#include "models/generation/decoder_seat.h"
#include "models/generation/token_model.h"
#include "models/layers/compute_context.h"
#include "models/luna/weights.h"
#include "models/luna_decoder/config.h"
#include "models/luna_decoder/weights.h"

namespace longview::models {

// Borrowed. Caches and budget change on the executor's thread; all else is constant.
struct LunaDecoderContext {
  const LunaDecoderConfig* config = nullptr;
  const LunaDecoderWeights* weights = nullptr;
  const LunaWeights* encoder = nullptr;  // Translation.
  TokenFrame frame;  // Its cache holds the sequences' states; null while a forward is counted.
  kernels::ProjectionCache* documents = nullptr;  // Translation.
  kernels::CacheBudget* budget = nullptr;
  const ComputeContext* host = nullptr;
  DecoderSeat* seat = nullptr;  // On a device; null: on the host.
};

}  // namespace longview::models
