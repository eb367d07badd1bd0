// A small closed vocabulary of whole tokens (TFDS TokenTextEncoder, the ListOps task of Long Range
// Arena): 0 = padding, 1..n the tokens in the order of their stored list, n + 1 = any other token.
// The order cannot be rebuilt from data: a checkpoint is only usable with its own list.
// Thread-safe: immutable after construction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::models {

class TokenVocabulary {
 public:
  // INVALID_ARGUMENT for an empty or repeated token.
  static absl::StatusOr<TokenVocabulary> Create(const std::vector<std::string>& tokens);

  // Ids of the tokens between white space.
  std::vector<int32_t> Encode(std::string_view text) const;

  int size() const { return static_cast<int>(ids_.size()) + 2; }

 private:
  std::map<std::string, int32_t, std::less<>> ids_;
};

// The ListOps source column as its tokenizer wants it: `]` becomes `X`, parentheses vanish.
std::string RenameListOps(std::string_view source);

}  // namespace longview::models
