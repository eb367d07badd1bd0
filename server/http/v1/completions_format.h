// The objects of /v1/completions: OpenAI's shape.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/call_totals.h"

namespace longview::server {

// The members shared by all objects of one answer.
struct CompletionNames {
  std::string id;          // "cmpl-..."
  std::string request_id;  // For errors.
  int64_t created = 0;     // Unix seconds.
  std::string model;
  bool logprobs = false;      // Whether choices have them.
  bool alternatives = false;  // And what else could have been: logprobs above 0.
};

// Where the tokens of a choice begin in its text, in Unicode code points. A character that takes
// several tokens is where each of them begins.
class TextOffsets {
 public:
  // The offset of the next token, which adds `bytes` to the text.
  int64_t Next(std::string_view bytes);

 private:
  int64_t characters_ = 0;  // Whole ones so far.
  int missing_ = 0;         // Bytes that the one begun still needs.
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

// A whole answer: item by item, the prompt in front of each choice if it is there.
std::string CompletionBody(const CompletionNames& names, const std::vector<Completed>& completed);

}  // namespace longview::server
