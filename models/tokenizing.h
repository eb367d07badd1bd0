// Tokenising and its inverse by a model's own tokenizer; with model.h a part of the server's view
// of models. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::models {

// A token as a model's tokenizer cuts it out of a text.
struct TextToken {
  int32_t id = 0;
  std::string text;        // Spelling in the text; of a template's token its name.
  int start = 0, end = 0;  // Code points of the text, end exclusive; 0 for a template's token.
  bool special = false;    // Put there by the template.
};

// One text that is the first of many pairs: the tokenizer finds its tokens for the first of them
// and keeps them here for the others. Whether the text is the same is the tokenizer's to check.
class SharedText {
 public:
  // The result of the first `make`, for all that follow.
  template <typename Make>
  void* Tokens(const Make& make) const {
    std::call_once(once_, [&] { tokens_ = make(); });
    return tokens_.get();
  }

 private:
  mutable std::once_flag once_;
  mutable std::shared_ptr<void> tokens_;
};

// Implemented beside Model by those that read text.
class Tokenizing {
 public:
  virtual ~Tokenizing() = default;

  // The tokens of a whole text, whatever its length: callers bound it. `add_special`: with those
  // that the model puts around a text. INVALID_ARGUMENT for bytes that are no text, UNIMPLEMENTED
  // if the directory has no tokenizer.
  virtual absl::StatusOr<std::vector<TextToken>> Tokenize(std::string_view text,
                                                          bool add_special) const = 0;
  // And back, as UTF-8; ids of no token add nothing.
  virtual absl::StatusOr<std::string> Detokenize(std::span<const int32_t> ids,
                                                 bool skip_special) const = 0;
};

}  // namespace longview::models
