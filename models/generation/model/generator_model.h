// Any family of generating language models as a Model: the family brings a Decoder, a TextCodec and
// what its configuration says; prompts, options, sampling, beams, stopping, text and costs are
// here.
//
// A decoder with an encoder makes a text2text-generation model: a request's text or ids are the
// document the encoder reads, what is generated is the output alone.
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
#include "models/directory/model_directory.h"
#include "models/generation/decoder/decoder.h"
#include "models/model.h"
#include "models/text/text_codec.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// A family's settings of generation, beside its decoder.
struct GeneratorTraits {
  // Defaults in the model's files; see ReadGenerationDefaults (model_defaults.h).
  GenerationOptions defaults;
  // Put in front of every text (not of token ids) that does not continue a document. Unset: an
  // empty prompt is refused.
  std::optional<int32_t> bos;
  // With an encoder: what every output begins with; part of it, but never shown. Tokens of a
  // request's own follow (HuggingFace: decoder_start_token_id, decoder_input_ids).
  std::vector<int32_t> decoder_start;
  std::vector<int32_t> eos;    // config.json's, where `defaults` say nothing.
  std::optional<int32_t> pad;  // Fills shorter rows of token ids; unset = the first eos, else 0.
  int default_top_k = 0;       // Used when sampling with GenerationDefaults::kHuggingFace.
  bool fairseq = false;        // Options and search are fairseq's; see SettingsContext.
};

struct GeneratorParts {
  std::unique_ptr<const ModelDirectory> directory;  // Borrowed by the decoder; may be null.
  // Facts the family knows. Tasks, tensors, max_tokens, prefill_alignment and has_tokenizer are
  // filled in here.
  ModelInfo info;
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<TextCodec> codec;  // Null: token ids only.
  // For documents that an encoder reads, with templates and truncation; borrowed, outlives the
  // model's parts with the decoder or the codec. Null: the codec encodes them.
  const Tokenizer* tokenizer = nullptr;
  GeneratorTraits traits;
  bool truncate = false;  // Texts that are too long, where the request does not say.
  bool warms_up = true;   // Whether WarmUp calibrates the decoder.
};

// Fills in the generator's part of `info`, for descriptions made without loading; the rest stays
// as it is.
void FillGeneratorInfo(int vocab, int max_tokens, int prefill_alignment, bool has_tokenizer,
                       ModelInfo& info);
// FillGeneratorInfo for a generator with an encoder; `max_tokens` of a document.
void FillEncoderDecoderInfo(int vocab, int max_tokens, int prefill_alignment, bool has_tokenizer,
                            bool global_attention, int width, ModelInfo& info);

// INVALID_ARGUMENT if the model's own defaults have a bad value.
absl::StatusOr<std::unique_ptr<Model>> MakeGeneratorModel(GeneratorParts parts);

}  // namespace longview::models
