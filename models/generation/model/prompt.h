// From a request to a prompt and settings: everything a client can get wrong is found here.
// Thread-safe: pure functions.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/encoder/prepare.h"
#include "models/generation/decoder/decoder.h"
#include "models/generation/model/generation_item.h"
#include "models/generation/model/generator_model.h"
#include "models/model.h"
#include "models/text/text_codec.h"

namespace longview::models {

// The parts that prepare requests. Borrowed, immutable.
struct GeneratorFrontEnd {
  const TextCodec* codec = nullptr;  // Null: token ids only.
  const GeneratorTraits* traits = nullptr;
  int vocab = 0;
  int max_tokens = 0;     // Limit of document, prompt and output together.
  bool truncate = false;  // Prompts that are too long, where the request does not say.
  // With an encoder: what documents are prepared with; max_tokens is the output's, start included.
  const EncoderFrontEnd* documents = nullptr;
};

// The item without its cost, of a generator without an encoder. INVALID_ARGUMENT "field: value,
// limit".
absl::StatusOr<std::unique_ptr<GenerationItem>> PrepareGeneration(const GeneratorFrontEnd& front,
                                                                  const Request& request);

// The limits for a prompt of `prompt` tokens (document included).
SettingsContext ContextOf(const GeneratorFrontEnd& front, int prompt);

// From a request to an encoder-decoder to the document its encoder reads and the start of the
// output: the item without its cost. INVALID_ARGUMENT "field: value, limit". REQUIRES:
// front.documents.
absl::StatusOr<std::unique_ptr<GenerationItem>> PrepareSourced(const GeneratorFrontEnd& front,
                                                               const Request& request);

}  // namespace longview::models
