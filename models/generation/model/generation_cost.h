// Costs of requests in closed form, from those of tokens.
// Thread-safe: pure functions of a thread-safe object.
#pragma once

#include <cstdint>

#include "models/generation/decoder/decoder.h"
#include "models/generation/decoder/encoder_stage.h"
#include "models/generation/model/generation_item.h"
#include "models/model.h"

namespace longview::models {

// Reading `prompt` tokens of which the first `read` are there already, then `new_tokens` for each
// of `sequences`.
struct GenerationSize {
  int read = 0;
  int prompt = 0;
  int new_tokens = 0;
  int sequences = 1;
};

double GenerationSeconds(const DecoderCosts& costs, const GenerationSize& size);
// Reading the tokens in [begin, end).
double ReadingSeconds(const DecoderCosts& costs, int64_t begin, int64_t end);

// Reservation of an item without an encoder, beside its document: a continuation of one
// shares the document's memory, a piece of one is what the document grows by.
double GenerationStateBytes(const DecoderCosts& costs, const GenerationItem& item,
                            int prefill_alignment);

// `encoder` is set if the item has a source, and is null otherwise.
Cost GenerationCost(const DecoderCosts& costs, const EncoderStage* encoder,
                    const GenerationItem& item, int prefill_alignment, int vocab);

}  // namespace longview::models
