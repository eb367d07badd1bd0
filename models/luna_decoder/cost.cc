#include "models/luna_decoder/cost.h"

#include <algorithm>

#include "models/layers/block_tail.h"
#include "models/luna/plan.h"
#include "models/luna_decoder/step.h"

namespace longview::models {

double LunaCosts::LinearWork() const {
  const LunaDecoderConfig& config = *context_.config;
  const double d = config.width;
  const double across = config.encoder ? 2 * d : 0;
  return config.layers * d * ((config.parts() + 1) * d + across + 2.0 * config.intermediate);
}

double LunaCosts::AttentionWork(int64_t) const {
  const LunaDecoderConfig& config = *context_.config;
  const double across = config.encoder ? 2 : 0;
  return (5.0 + across) * config.layers * config.projected * config.width;
}

double LunaCosts::RowWork() const {
  const LunaDecoderConfig& config = *context_.config;
  return config.layers * ((config.parts() + 3.0) * config.width + config.intermediate);
}

double LunaDocumentLinears(const LunaDecoderConfig& config, const EncoderSequence& document) {
  const LunaConfig& encoder = *config.encoder;
  const double n = document.tokens(), d = config.width, l = ActiveRows(encoder, document);
  const double parts = config.tied_kv ? 1 : 2;
  return encoder.layers *
             (n * d * ((parts + 2) * d + 2.0 * encoder.intermediate) + l * d * d * (parts + 1)) +
         config.layers * d * d * (n * parts + l * (parts + 2));
}

double LunaDocumentAttention(const LunaDecoderConfig& config, const EncoderSequence& document) {
  const LunaConfig& encoder = *config.encoder;
  const double n = document.tokens(), l = ActiveRows(encoder, document);
  return 2 * n * l * config.width * (2.0 * encoder.layers + config.layers);
}

double LunaCosts::DocumentSeconds(const EncoderSequence& document) const {
  const LunaDecoderConfig& config = *context_.config;
  return LunaDocumentLinears(config, document) * rates().linear_seconds +
         LunaDocumentAttention(config, document) * rates().prefill_attention +
         RowWork() * document.tokens() * rates().row_seconds;
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
                             wanted * LunaStep::DocumentScratchBytes(context_) +
                             std::max(panels, tail)) +
         4.0 * static_cast<double>(wanted) * config.vocab;
}

}  // namespace longview::models
