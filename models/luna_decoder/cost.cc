#include "models/luna_decoder/cost.h"

#include <algorithm>

#include "models/layers/block_tail.h"
#include "models/luna_decoder/step.h"

namespace longview::models {

double LunaLinearWork(const LunaDecoderConfig& config) {
  const double d = config.width;
  return config.layers * d * ((config.parts() + 1) * d + 2.0 * config.intermediate);
}

double LunaOuterWork(const LunaDecoderConfig& config) {
  return 5.0 * config.layers * config.projected * config.width;
}

double LunaRowWork(const LunaDecoderConfig& config) {
  return config.layers * ((config.parts() + 3.0) * config.width + config.intermediate);
}

// A fork takes a state of its own as soon as it reads.
double LunaCosts::StateBytes(int64_t, int64_t, int sequences) const {
  return static_cast<double>(sequences * LunaStates::StateBytes(*context_.config));
}

double LunaCosts::WorkspaceBytes(int64_t prefill_tokens, int sequences) const {
  const LunaDecoderConfig& config = *context_.config;
  const int64_t wanted = sequences + (prefill_tokens > 0 ? 1 : 0);
  const int64_t widest = std::max<int64_t>(config.vocab, int64_t{config.parts()} * config.width);
  const auto panels = static_cast<size_t>(kPanelRows * widest * ElementBytes(context_.compute));
  const size_t tail = TailPanelBytes(config.width, config.intermediate, context_.compute);
  return static_cast<double>(LunaStep::ScratchBytes(context_, prefill_tokens + sequences) +
                             std::max(panels, tail)) +
         4.0 * static_cast<double>(wanted) * config.vocab;
}

double LunaCosts::PrefillSeconds(int64_t) const {
  const LunaDecoderConfig& config = *context_.config;
  return LunaLinearWork(config) * rates_.linear_seconds +
         LunaOuterWork(config) * rates_.outer_seconds + LunaRowWork(config) * rates_.row_seconds;
}

double LunaCosts::DecodeSeconds(int64_t) const {
  const LunaDecoderConfig& config = *context_.config;
  return LunaOuterWork(config) * rates_.outer_seconds + LunaRowWork(config) * rates_.row_seconds;
}

}  // namespace longview::models
