// Reads the tokenizer files of a model directory into one complete tokenizer.json.
//
// Settings that HuggingFace spreads over several files (old layouts, overriding flags) are brought
// into the one form that the tokenizers crate reads; whatever it would read differently from
// what the file says is refused here.
// Thread-safe: a pure function.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::models {

// A token that must have this id once everything is loaded.
struct TokenClaim {
  std::string token;
  int64_t id = 0;
  std::string where;
};

struct TokenizerSource {
  std::string json;    // A checked tokenizer.json.
  std::string origin;  // The main file, for messages.
  std::vector<TokenClaim> claims;
  std::map<std::string, std::string, std::less<>> roles;  // "mask_token" -> "<mask>".
  int64_t model_max_length = 0;                           // 0 = none.
  bool cuts_left = false;
  bool marks_continuations = false;
  bool gives_types = true;
  bool lower_case = false;  // Left to the caller: no file of a tokenizer says it.
};

// NOT_FOUND if there are no tokenizer files; INVALID_ARGUMENT names file and key.
absl::StatusOr<TokenizerSource> ReadTokenizerDirectory(const std::string& directory);

}  // namespace longview::models
