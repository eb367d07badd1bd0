#include "models/luna_decoder/text.h"

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/text/bounded_codec.h"
#include "models/text/dictionary_codec.h"
#include "models/text/dictionary_tokenizer.h"

namespace longview::models {
namespace {

// Outputs by one dictionary, documents by another or the same.
class TranslationCodec final : public TextCodec, public BoundedCodec {
 public:
  TranslationCodec(std::unique_ptr<TextCodec> outputs, Tokenizer documents)
      : outputs_(std::move(outputs)), documents_(std::move(documents)) {}

  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override {
    return outputs_->Encode(text);
  }
  absl::StatusOr<TextTokens> EncodeFirst(std::string_view text,
                                         const TextBounds& bounds) const override {
    return models::EncodeFirst(*outputs_, text, bounds);
  }
  std::string Bytes(int32_t id) const override { return outputs_->Bytes(id); }
  const Tokenizer& documents() const { return documents_; }

 private:
  const std::unique_ptr<TextCodec> outputs_;
  const Tokenizer documents_;
};

}  // namespace

absl::StatusOr<LunaText> ReadLunaText(const std::string& directory,
                                      const LunaDecoderConfig& config) {
  LunaText text;
  const bool two = std::filesystem::exists(std::filesystem::path(directory) / "dict.tgt.txt");
  const std::string target = two && config.encoder ? "dict.tgt.txt" : "dict.txt";
  absl::StatusOr<std::unique_ptr<TextCodec>> outputs =
      DictionaryCodec::Read(directory, target, config.vocab);
  if (!outputs.ok()) return outputs.status();
  if (*outputs == nullptr || !config.encoder) {
    text.codec = *std::move(outputs);
    return text;
  }
  const std::string source = two ? "dict.src.txt" : "dict.txt";
  const absl::StatusOr<TokenizerSource> dictionary = ReadDictionaryTokenizer(directory, {}, source);
  if (absl::IsNotFound(dictionary.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, ": dict.tgt.txt needs dict.src.txt beside it"));
  }
  if (!dictionary.ok()) return dictionary.status();
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Create(*dictionary);
  if (!tokenizer.ok()) return tokenizer.status();
  if (tokenizer->max_id() >= config.encoder->vocab) {
    return absl::InvalidArgumentError(absl::StrCat(dictionary->origin, ": ids up to ",
                                                   tokenizer->max_id(), ", vocab_size is ",
                                                   config.encoder->vocab));
  }
  auto codec = std::make_unique<TranslationCodec>(*std::move(outputs), *std::move(tokenizer));
  text.documents = &codec->documents();
  text.codec = std::move(codec);
  return text;
}

}  // namespace longview::models
