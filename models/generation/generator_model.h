// Any family of generating language models as a Model: the family brings a Decoder, a TextCodec and
// what its configuration says; prompts, options, sampling, beams, stopping, text and costs are
// here.
//
// Generators are driven by Start and BeginStep. Begin, the way of models that answer in one pass,
// gives a run whose every item is UNIMPLEMENTED.
//
// Thread-safety as Model says: Prepare and EstimateTokens from any thread, the rest on the
// executor's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "models/generation/decoder.h"
#include "models/model.h"
#include "models/text/text_codec.h"

namespace longview::models {

// What a family says about generating, beside its decoder.
struct GeneratorTraits {
  // Of the model's files; see ReadGenerationDefaults (model_defaults.h).
  GenerationOptions defaults;
  // Put in front of every text (not of token ids) that does not continue a document. Unset: an
  // empty prompt is refused.
  std::optional<int32_t> bos;
  std::vector<int32_t> eos;    // Where `defaults` say nothing: config.json's.
  std::optional<int32_t> pad;  // Fills shorter rows of token ids; unset = the first eos, else 0.
  int default_top_k = 0;       // Of sampling with GenerationDefaults::kHuggingFace.
};

struct GeneratorParts {
  // Facts the family knows. Tasks, tensors, max_tokens, prefill_granule and has_tokenizer are
  // filled in here.
  ModelInfo info;
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<TextCodec> codec;  // Null: token ids only.
  GeneratorTraits traits;
};

// What `info` says of a generator, for descriptions made without loading; the rest of `info` stays
// as it is.
void DescribeGenerator(int vocab, int max_tokens, int prefill_granule, bool has_tokenizer,
                       ModelInfo& info);

// INVALID_ARGUMENT if the model's own defaults have a bad value.
absl::StatusOr<std::unique_ptr<Model>> MakeGeneratorModel(GeneratorParts parts);

}  // namespace longview::models
