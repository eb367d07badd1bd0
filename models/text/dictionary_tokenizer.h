// The tokenizer of an encoder whose only vocabulary is fairseq's dict.txt: symbols between white
// space, wrapped in the model's template. Texts are prepared lines, as fairseq's own tools write
// them: one symbol per character or byte (Long Range Arena), decimal ids of a BPE (RoBERTa-style
// models).
// Thread-safe: pure functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/text/tokenizer_directory.h"

namespace longview::models {

// Additions of a model to its dictionary and to a text.
struct DictionaryTemplate {
  std::string first;     // Begins a text: "<s>", or `added`; empty: nothing does.
  std::string added;     // Not in the file, at id `added_id`: "<CLS>", "<mask>"; empty: nothing.
  int32_t added_id = 0;  // Behind the dictionary's symbols.
  bool mask = false;     // `added` stands for a masked word.
};

// `file` of `directory` as a tokenizer.json: `first A </s>`, pairs `first A </s> </s> B </s>`;
// other symbols are <unk>. NOT_FOUND without the file; INVALID_ARGUMENT names file and line.
absl::StatusOr<TokenizerSource> ReadDictionaryTokenizer(const std::string& directory,
                                                        const DictionaryTemplate& model,
                                                        const std::string& file = "dict.txt");

}  // namespace longview::models
