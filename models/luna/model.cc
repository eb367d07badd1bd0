#include "models/luna/model.h"

#include <optional>
#include <utility>

#include "models/encoder/device_model.h"
#include "models/luna/family.h"
#include "models/text/dictionary_tokenizer.h"

namespace longview::models {
namespace {

// The dictionary as the tokenizer of a directory that has no other. Unset if there is none either.
absl::StatusOr<std::optional<Tokenizer>> ReadDictionary(const ModelDirectory& directory,
                                                        const LunaConfig& config) {
  if (directory.tokenizer || directory.bytes) return std::optional<Tokenizer>();
  const DictionaryTemplate model = config.is_lra()
                                       ? DictionaryTemplate{"<CLS>", "<CLS>", config.added, false}
                                       : DictionaryTemplate{"<s>", "<mask>", config.added, true};
  absl::StatusOr<TokenizerSource> source = ReadDictionaryTokenizer(directory.path, model);
  if (absl::IsNotFound(source.status())) return std::optional<Tokenizer>();
  if (!source.ok()) return source.status();
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Create(*source);
  if (!tokenizer.ok()) return tokenizer.status();
  return std::optional<Tokenizer>(*std::move(tokenizer));
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLuna(const ModelDirectory& directory) {
  const absl::StatusOr<LunaConfig> config = Luna::Read(directory);
  if (!config.ok()) return config.status();
  const auto dictionary = ReadDictionary(directory, *config);
  if (!dictionary.ok()) return dictionary.status();
  return DescribeFamily<Luna>(directory, dictionary->has_value());
}

absl::StatusOr<std::unique_ptr<Model>> LoadLuna(ModelDirectory directory,
                                                const LoadOptions& options) {
  const absl::StatusOr<LunaConfig> config = Luna::Read(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<std::optional<Tokenizer>> dictionary = ReadDictionary(directory, *config);
  if (!dictionary.ok()) return dictionary.status();
  if (*dictionary) directory.tokenizer = **std::move(dictionary);
  return LoadEncoder(std::move(directory), options, BuildFamily<Luna>,
                     BuildPassOnDevice<Luna>);
}

}  // namespace longview::models
