// fairseq's dict.txt as the text of a generating model: symbols between white space.
//
// A word adds itself and a blank to a text; a piece that ends in `@@` (subword-nmt: the word goes
// on) adds what is before. Specials, fairseq's filling symbols (`madeupword0000`) and ids behind
// the dictionary add nothing. Immutable: thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/text/bounded_codec.h"
#include "models/text/dictionary.h"
#include "models/text/text_codec.h"

namespace longview::models {

class DictionaryCodec final : public TextCodec, public BoundedCodec {
 public:
  // `file` of `directory`; null if there is none. `vocabulary` is the number of ids of the model.
  // INVALID_ARGUMENT names file and line, or both sizes.
  static absl::StatusOr<std::unique_ptr<TextCodec>> Read(const std::string& directory,
                                                         const std::string& file, int vocabulary);

  explicit DictionaryCodec(Dictionary dictionary) : dictionary_(std::move(dictionary)) {}

  // Symbols that are not in the file are <unk>; never an error.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<TextTokens> EncodeFirst(std::string_view text,
                                         const TextBounds& bounds) const override;
  std::string Bytes(int32_t id) const override;

 private:
  const Dictionary dictionary_;
};

}  // namespace longview::models
