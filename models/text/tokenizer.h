// Text to token ids and back, identical to HuggingFace's fast tokenizers: ids, offsets, word ids,
// type ids, truncation. Runs the `tokenizers` crate itself.
//
// Thread-safe: immutable after loading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

struct LvtTokenizer;

namespace longview::models {

class SharedText;
struct TokenizerSource;

// Text that gives way when a pair is too long. Longest first: only the longer one as long as the
// shorter fits in half of the room, else halves (an odd token goes to the originally longer text,
// to the second when equal).
enum class TruncationStrategy { kLongestFirst, kOnlyFirst, kOnlySecond };

enum class OffsetUnit { kCodePoints, kBytes };

struct EncodeOptions {
  // Wrap into the model's template: `<s> A </s>`, `[CLS] A [SEP] B [SEP]`.
  bool add_special_tokens = true;
  // Special tokens written in the text become their ids, as in HuggingFace. Off for text that a
  // third party wrote: `</s>` in it is then ordinary characters.
  bool match_special_tokens = true;
  int max_length = 0;  // Tokens, specials included; 0 = no truncation.
  TruncationStrategy strategy = TruncationStrategy::kLongestFirst;
  bool cut_left = false;  // Keep the end of the text instead of its beginning.
  int keep_first = 0;  // With cut_left: first tokens of the first text that stay. No windows then.
  // The cut-off rest follows as further windows of max_length tokens that share `stride` tokens
  // with their neighbours, each in its own template. For pairs not with kLongestFirst.
  bool windows = false;
  int stride = 0;
  OffsetUnit offsets = OffsetUnit::kCodePoints;
  // Keeps the first text's tokens for other calls, where it has up to 256 KiB; borrowed. The result
  // is the same. Without effect on windows.
  const SharedText* shared = nullptr;
};

// One sequence of tokens; all vectors have the same length.
struct Encoding {
  struct Range {
    int32_t begin = 0, end = 0;  // In the original text, end exclusive.
    bool operator==(const Range&) const = default;
  };
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;
  std::vector<Range> offsets;         // (0, 0) for tokens of the template.
  std::vector<int32_t> words;         // Index of the word in its text; -1 = none.
  std::vector<int8_t> sequences;      // 0 = text, 1 = pair, -1 = template.
  std::vector<uint8_t> special_mask;  // 1 = added by the template.
};

struct EncodeResult {
  Encoding encoding;
  std::vector<Encoding> windows;  // With EncodeOptions::windows: what follows `encoding`.
  int tokens_cut = 0;             // Tokens that truncation took from the texts.
  bool counted = true;            // False: at least so many.
};

// Ids of the tokens with a role; unset if the model has none.
struct SpecialIds {
  std::optional<int32_t> bos, eos, unk, sep, pad, cls, mask;
};

class Tokenizer {
 public:
  // Reads a model directory: tokenizer.json, else vocab.json + merges.txt, else vocab.txt, else
  // XLM-RoBERTa's sentencepiece.bpe.model; with tokenizer_config.json, special_tokens_map.json and
  // added_tokens.json where they exist, and with config.json for the tokenizer's class.
  // NOT_FOUND if the directory has no tokenizer; INVALID_ARGUMENT (file, key or component) for
  // one that is broken or has parts that are not supported. No part is ever ignored silently.
  // `lower_case`: texts are lower-cased before all else, as by Python's str.lower.
  static absl::StatusOr<Tokenizer> Load(const std::string& directory, bool lower_case = false);

  // The tokenizer that `source` spells out. Errors as above.
  static absl::StatusOr<Tokenizer> Create(const TokenizerSource& source);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // INVALID_ARGUMENT: text that is not UTF-8 (message has the byte), max_length below the number
  // of template tokens, a text that truncation may not shorten enough, a stride as long as the
  // window. CANCELLED: StopScope, for long texts. NUL bytes are text. Memory is about 150 bytes a
  // token: callers bound the input.
  absl::StatusOr<EncodeResult> Encode(std::string_view text, const EncodeOptions& options) const;
  absl::StatusOr<EncodeResult> EncodePair(std::string_view text, std::string_view pair,
                                          const EncodeOptions& options) const;

  // No clean-up of spaces; bytes that are not UTF-8 become U+FFFD; unknown ids are skipped.
  absl::StatusOr<std::string> Decode(std::span<const int32_t> ids, bool skip_special) const;

  std::optional<int32_t> TokenToId(std::string_view token) const;
  // The token as the vocabulary spells it ("Ġthe").
  std::optional<std::string> IdToToken(int32_t id) const;

  int vocab_size() const;  // Added tokens included.
  int32_t max_id() const;  // -1 = empty.
  const SpecialIds& special() const { return special_; }
  int64_t model_max_length() const { return model_max_length_; }  // 0 = none given.
  bool cuts_left() const { return cuts_left_; }                   // By the files' truncation_side.
  // Whether the vocabulary marks tokens that go on with a word ("##ing").
  bool marks_continuations() const { return marks_continuations_; }
  // Whether token types are among the inputs it makes (`model_input_names`, or its class).
  bool gives_types() const { return gives_types_; }

 private:
  struct Free {
    void operator()(LvtTokenizer* tokenizer) const;
  };

  Tokenizer() = default;
  absl::Status CheckClaims(const TokenizerSource& source) const;
  absl::StatusOr<EncodeResult> Run(std::string_view text, const std::string_view* pair,
                                   const EncodeOptions& options) const;

  std::unique_ptr<LvtTokenizer, Free> handle_;
  SpecialIds special_;
  int64_t model_max_length_ = 0;
  bool cuts_left_ = false;
  bool marks_continuations_ = false;
  bool gives_types_ = true;
  bool lower_case_ = false;
};

// A text cut to a number of tokens.
struct TextCut {
  std::string_view kept;  // Borrowed from the text.
  int tokens_cut = 0;     // At least, of long texts.
};

// The first `tokens` tokens of a text (`left`: the last), tokenised without a template. Never
// splits a character. Errors are Tokenizer::Encode's. REQUIRES: tokens > 0. Thread-safe.
absl::StatusOr<TextCut> CutText(const Tokenizer& tokenizer, std::string_view text, int tokens,
                                bool left);

}  // namespace longview::models
