// Classes of tokenizers in transformers: kinds whose constructors add settings or a template to the
// files, and whether a class gives token types.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// "BertTokenizer" of "BertTokenizerFast".
std::string_view WithoutFast(std::string_view tokenizer_class);

// kGeneric reads tokenizer.json and nothing else; kUnknown: no file names a class.
enum class TokenizerKind { kUnknown, kGeneric, kBert, kRoberta, kXlmRoberta };

struct TokenizerClass {
  std::string name;  // Without "Fast"; empty: no file names one.
  TokenizerKind kind = TokenizerKind::kUnknown;
  bool gives_types = true;  // token_type_ids are among the inputs that it makes.
};

// The class that tokenizer_config.json names, else config.json's tokenizer_class, else that of its
// model_type. Absent files are empty objects.
TokenizerClass FindTokenizerClass(const nlohmann::json& tokenizer_config,
                                  const nlohmann::json& model_config);

}  // namespace longview::models
