// How generating Luna models read and write text: fairseq's dictionaries, dict.txt, or with two
// vocabularies dict.src.txt and dict.tgt.txt. Lines are prepared ones, tokenised and split into
// pieces as for the training.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "models/luna_decoder/config.h"
#include "models/text/text_codec.h"
#include "models/text/tokenizer.h"

namespace longview::models {

struct LunaText {
  std::unique_ptr<TextCodec> codec;  // Writes outputs; null without dictionaries.
  // Reads documents to translate, each ended by </s>; owned by `codec`.
  const Tokenizer* documents = nullptr;
};

// INVALID_ARGUMENT names the file: broken, of another size than the vocabulary, or one of two.
absl::StatusOr<LunaText> ReadLunaText(const std::string& directory,
                                      const LunaDecoderConfig& config);

}  // namespace longview::models
