// Builds a tokenizer.json from the files of older layouts: vocab.json + merges.txt (byte-level
// BPE of RoBERTa, Longformer, LED, BART, GPT-2), vocab.txt (WordPiece of BERT) and a SentencePiece
// vocabulary (XLM-RoBERTa). The result is what HuggingFace's converters build for those tokenizer
// classes.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/text/tokenizer_class.h"
#include "nlohmann/json.hpp"

namespace longview::models {

// The tokens of the templates, by content.
struct TemplateTokens {
  std::string cls, sep;
};

// BERT's `[CLS] A [SEP] B [SEP]` and RoBERTa's `<s> A </s></s> B </s>` as post-processors.
nlohmann::json BertTemplate(const TemplateTokens& tokens, const nlohmann::json& cls_id,
                            const nlohmann::json& sep_id);
nlohmann::json RobertaTemplate(const TemplateTokens& tokens, const nlohmann::json& cls_id,
                               const nlohmann::json& sep_id);

// `tokenizer_class` (empty = not given) decides the template; classes other than the above are
// refused by name. `merges` is the text of merges.txt, with or without its `#version` line.
absl::StatusOr<nlohmann::json> ComposeBytePairTokenizer(nlohmann::json vocab,
                                                        std::string_view merges,
                                                        std::string_view tokenizer_class,
                                                        const TemplateTokens& tokens);

// Flags as in tokenizer_config.json: do_lower_case, strip_accents (null = as do_lower_case),
// tokenize_chinese_chars. `vocab` is the text of vocab.txt.
absl::StatusOr<nlohmann::json> ComposeWordPieceTokenizer(std::string_view vocab,
                                                         const nlohmann::json& config,
                                                         std::string_view tokenizer_class,
                                                         const TemplateTokens& tokens,
                                                         std::string_view unk_token);

// XLM-RoBERTa's four tokens first, then the pieces behind SentencePiece's own three, the mask.
// `bytes` is the file `name`. INVALID_ARGUMENT for classes and kinds of vocabularies that another
// rule holds for: it names them, and says how a tokenizer.json is made.
absl::StatusOr<nlohmann::json> ComposeUnigramTokenizer(const std::string& bytes,
                                                       std::string_view name,
                                                       const TokenizerClass& tokenizer_class);

}  // namespace longview::models
