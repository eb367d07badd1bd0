// The objects of /v1/completions: OpenAI's shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "server/api/calls/call_totals.h"

namespace longview::server {

// The members shared by all objects of one answer.
struct CompletionNames {
  std::string id;          // "cmpl-..."
  std::string request_id;  // For errors.
  int64_t created = 0;     // Unix seconds.
  std::string model;
  bool logprobs = false;      // Whether choices have them.
  bool alternatives = false;  // Whether they name other candidates: logprobs above 0.
};

// The offsets at which a choice's tokens begin in its text, in Unicode code points. All tokens of
// one character have that character's offset.
class TextOffsets {
 public:
  // The offset of the next token, which adds `bytes` to the text.
  int64_t Next(std::string_view bytes);

 private:
  int64_t characters_ = 0;  // Whole ones so far.
  int missing_ = 0;         // Bytes that the one begun still needs.
};

// Writes one choice part by part, so that a long one need not be in memory as a whole.
class ChoiceWriter {
 public:
  // The texts and tokens of `pieces`, one or more, each behind the other; the last one says why the
  // choice ends. `offsets` goes on where the choice's last piece ended. All must live as long.
  ChoiceWriter(const CompletionNames& names, std::vector<const models::Piece*> pieces, int index,
               TextOffsets* offsets);

  // Appends some `most` bytes, and the rest of a token or text that begins in them. Whether there
  // is more.
  bool Append(size_t most, std::string* out);

  // Leaves out the tokens that are not written yet: what Append adds closes the JSON.
  void Cut() { cut_ = true; }

 private:
  enum class Stage { kBegin, kTokens, kLogprobs, kAlternatives, kOffsets, kEnd, kWritten };

  void Step(std::string* out);
  void Begin(std::string* out);
  void End(std::string* out);
  void AppendToken(const models::TokenLogprob& token, std::string* out);
  // Begins a stage with its first token.
  void Go(Stage stage, std::string_view between, std::string* out);
  // The stage's next token; null: there is none.
  const models::TokenLogprob* Next();
  void Separate(std::string* out);

  const CompletionNames& names_;
  const std::vector<const models::Piece*> pieces_;
  const int index_;
  TextOffsets* const offsets_;
  Stage stage_ = Stage::kBegin;
  size_t piece_ = 0, token_ = 0;  // The stage's next token.
  bool first_ = true;             // The list has none yet.
  bool cut_ = false;
};

// One choice: its text so far, or all of it. `offsets` goes on where the last piece ended.
void AppendChoice(const CompletionNames& names, const models::Piece& piece, TextOffsets* offsets,
                  std::string* out);

// {"id", "object", "created", "model", "choices":[
void AppendHead(const CompletionNames& names, std::string* out);

// {"prompt_tokens", "completion_tokens", "total_tokens", ...}
void AppendUsage(const models::ItemUsage& usage, std::string* out);

// A token as text: "bytes:\xNN..." where it is no whole characters, "token_id:N" where it adds
// nothing to the text.
std::string TokenText(const models::TokenLogprob& token);

// About as many bytes as the answer will have.
size_t CompletionBytes(const CompletionNames& names, const std::vector<Completed>& completed);

// A whole answer: item by item, the prompt in front of each choice if it is there. INVALID_ARGUMENT
// once it has more than `limit` bytes; it is written no further.
absl::StatusOr<std::string> CompletionBody(const CompletionNames& names,
                                           const std::vector<Completed>& completed, size_t limit);

}  // namespace longview::server
