// Tokenizers whose tokens are single bytes, as the `tokenizer` object of a byte-level language
// model's config.json describes them:
//
//   {"type": "bytes", "offset": o}                     id = byte + o, o + 256 <= vocabulary
//   {"type": "fairseq_enwik8", "file": "dict.txt"}     symbols are bytes as decimal numbers
//   {"type": "fairseq_text8", "file": "dict.txt"}      symbols are characters, `_` for the blank
//
// fairseq's two read each end of a line as </s>, id 2; bytes without a symbol are <unk>, id 3.
// Ids that no byte has are specials or unused and add nothing to a text.
// Immutable: thread-safe.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/text/bounded_codec.h"
#include "models/text/text_codec.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

class ByteCodec final : public TextCodec, public BoundedCodec {
 public:
  // `object` is the value of "tokenizer", null: bytes from id 0. `directory` has the dictionary.
  // `vocabulary` is the number of ids of the model. INVALID_ARGUMENT and NOT_FOUND begin with
  // `origin` or the dictionary's path.
  static absl::StatusOr<std::unique_ptr<ByteCodec>> Create(const nlohmann::json* object,
                                                           const std::string& directory,
                                                           int vocabulary,
                                                           const std::string& origin);

  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<TextTokens> EncodeFirst(std::string_view text,
                                         const TextBounds& bounds) const override;
  std::string Bytes(int32_t id) const override;

 private:
  explicit ByteCodec(int vocabulary) : bytes_(static_cast<size_t>(vocabulary)) { ids_.fill(0); }

  // Byte <-> id.
  void Pair(unsigned char byte, int32_t id);
  static std::unique_ptr<ByteCodec> Offset(int offset, int vocabulary);
  static absl::StatusOr<std::unique_ptr<ByteCodec>> FromDictionary(const std::string& type,
                                                                   const std::string& path,
                                                                   int vocabulary);

  std::array<int32_t, 256> ids_;
  std::vector<std::optional<char>> bytes_;  // By id.
};

}  // namespace longview::models
