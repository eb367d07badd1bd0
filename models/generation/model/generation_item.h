// A prepared request of a generator: the prompt as tokens, and how to go on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/encoder/sequence.h"
#include "models/generation/decoder/encoder_stage.h"
#include "models/generation/model/generator_document.h"
#include "models/generation/options/settings.h"
#include "models/model.h"

namespace longview::models {

// Immutable once Prepare returned it.
struct GenerationItem final : Item {
  GenerationSettings settings;
  std::vector<int32_t> prompt;  // Behind the document's tokens; with an encoder, of the output.
  std::string prompt_text;      // Prompt for `echo`.

  std::shared_ptr<GeneratorDocument> document;  // Null: the prompt is all there is.
  int document_tokens = 0;                      // When the request was prepared.
  uint64_t cache_space = 0;                     // The request's cache space.
  bool extend = false;                          // The prompt becomes part of the document.

  std::optional<EncoderSequence> source;  // The encoder's input; unset: there is none.
  DocumentCost source_cost;

  std::vector<std::string> tensors;  // Names wanted, in order.
  bool wants_logits = false;         // The tensor of the prompt's logits.

  // Whether the prompt's tokens get log-probabilities.
  bool scores_prompt() const { return settings.echo && settings.logprobs.has_value(); }

  void SetCost(const Cost& cost) { cost_ = cost; }
  void SetUsage(const ItemUsage& usage) { usage_ = usage; }
};

}  // namespace longview::models
