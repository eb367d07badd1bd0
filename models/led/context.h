// What every document and step of one LED shares.
#pragma once

#include "kernels/cache/cache_budget.h"
#include "models/led/config.h"
#include "models/led/weights.h"
#include "models/longformer/weights.h"
#include "models/stack/context.h"

namespace longview::models {

// Borrowed. Caches and budget change on the executor's thread; all else is constant.
struct LedContext {
  const LedConfig* config = nullptr;
  const LedWeights* weights = nullptr;
  LongformerContext encoder;
  StackContext decoder;
  kernels::CacheBudget* budget = nullptr;
};

}  // namespace longview::models
