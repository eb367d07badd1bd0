// The parts that all documents and steps of one LED share.
#pragma once

#include "kernels/cache/cache_budget.h"
#include "models/generation/decoder_seat.h"
#include "models/led/config.h"
#include "models/led/weights.h"
#include "models/longformer/weights.h"
#include "models/stack/context.h"

namespace longview::models {

// Borrowed. Caches and budget change on the executor's thread; all else is constant.
struct LedContext {
  const LedConfig* config = nullptr;
  const LedWeights* weights = nullptr;
  LongformerContext encoder;  // On the host.
  StackContext decoder;       // Its compute type is the encoder's too.
  kernels::CacheBudget* budget = nullptr;
  DecoderSeat* seat = nullptr;  // On a device; null: on the host.
};

}  // namespace longview::models
