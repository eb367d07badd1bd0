#include "server/http/v1/completions_format.h"

#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/http/json/writer.h"

namespace longview::server {
namespace {

using models::Piece;
using models::TokenLogprob;

// Bytes of the UTF-8 character that begins so; 1 for bytes that begin none.
int LengthOf(unsigned char first) {
  if (first >= 0xF0 && first < 0xF8) return 4;
  if (first >= 0xE0) return first < 0xF0 ? 3 : 1;
  return first >= 0xC2 ? 2 : 1;
}

bool Continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

bool IsWholeText(std::string_view bytes) {
  int missing = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if ((missing > 0) != Continues(byte)) return false;
    missing = missing > 0 ? missing - 1 : LengthOf(byte) - 1;
    if (missing == 0 && byte >= 0x80 && !Continues(byte)) return false;
  }
  return missing == 0;
}

// Separates the elements of a list.
void Comma(std::string* out) {
  if (out->back() != '[' && out->back() != '{') out->push_back(',');
}

void AppendTokens(const std::vector<TokenLogprob>& tokens, std::string* out) {
  out->append(R"({"tokens":[)");
  for (const TokenLogprob& token : tokens) {
    Comma(out);
    AppendJsonString(TokenText(token), out);
  }
  out->append(R"(],"token_logprobs":[)");
  for (const TokenLogprob& token : tokens) {
    Comma(out);
    AppendJson(token.logprob, out);  // null for the first of all.
  }
}

// The likeliest tokens at a position and the one that was taken. JSON objects hold a name once:
// of tokens with the same text the likelier counts.
void AppendAlternatives(const std::vector<TokenLogprob>& top, const TokenLogprob& taken,
                        std::string* out) {
  if (std::isnan(taken.logprob)) {
    out->append("null");
    return;
  }
  std::set<std::string> seen;
  const auto append = [&](const TokenLogprob& token) {
    std::string text = TokenText(token);
    if (seen.contains(text)) return;
    Comma(out);
    AppendJsonString(text, out);
    out->push_back(':');
    AppendJson(token.logprob, out);
    seen.insert(std::move(text));
  };
  out->push_back('{');
  for (const TokenLogprob& token : top) append(token);
  append(taken);
  out->push_back('}');
}

void AppendLogprobs(const CompletionNames& names, const Piece& piece, TextOffsets* offsets,
                    std::string* out) {
  if (!names.logprobs) {
    out->append("null");
    return;
  }
  AppendTokens(piece.logprobs, out);
  out->append(R"(],"top_logprobs":)");
  if (names.alternatives) {
    out->push_back('[');
    for (size_t i = 0; i < piece.logprobs.size(); ++i) {
      Comma(out);
      AppendAlternatives(i < piece.top.size() ? piece.top[i] : std::vector<TokenLogprob>(),
                         piece.logprobs[i], out);
    }
    out->push_back(']');
  } else {
    out->append("null");
  }
  out->append(R"(,"text_offset":[)");
  for (const TokenLogprob& token : piece.logprobs) {
    Comma(out);
    AppendJson(offsets->Next(token.bytes), out);
  }
  out->append("]}");
}

Piece Joined(const Piece* prompt, const Piece& sequence, int index) {
  Piece joined;
  if (prompt != nullptr) joined = *prompt;
  joined.index = index;
  joined.text += sequence.text;
  joined.logprobs.insert(joined.logprobs.end(), sequence.logprobs.begin(), sequence.logprobs.end());
  if (prompt != nullptr) joined.top.resize(prompt->logprobs.size());
  joined.top.insert(joined.top.end(), sequence.top.begin(), sequence.top.end());
  joined.finish_reason = sequence.finish_reason;
  return joined;
}

}  // namespace

int64_t TextOffsets::Next(std::string_view bytes) {
  const auto end_broken = [this](char next) {
    if (missing_ == 0 || Continues(static_cast<unsigned char>(next))) return;
    ++characters_;
    missing_ = 0;
  };
  if (!bytes.empty()) end_broken(bytes.front());
  const int64_t offset = characters_;
  for (const char c : bytes) {
    end_broken(c);
    missing_ = missing_ > 0 ? missing_ - 1 : LengthOf(static_cast<unsigned char>(c)) - 1;
    if (missing_ == 0) ++characters_;
  }
  return offset;
}

std::string TokenText(const TokenLogprob& token) {
  if (token.bytes.empty()) return absl::StrCat("token_id:", token.id);
  if (IsWholeText(token.bytes)) return token.bytes;
  std::string text = "bytes:";
  for (const char c : token.bytes) {
    absl::StrAppendFormat(&text, "\\x%02x", static_cast<unsigned char>(c));
  }
  return text;
}

void AppendChoice(const CompletionNames& names, const Piece& piece, TextOffsets* offsets,
                  std::string* out) {
  out->append(R"({"index":)");
  AppendJson(int64_t{piece.index}, out);
  out->append(R"(,"text":)");
  AppendJsonString(piece.text, out);
  out->append(R"(,"logprobs":)");
  AppendLogprobs(names, piece, offsets, out);
  out->append(R"(,"finish_reason":)");
  if (piece.finish_reason.empty()) {
    out->append("null}");
  } else {
    AppendJsonString(piece.finish_reason, out);
    out->push_back('}');
  }
}

void AppendHead(const CompletionNames& names, std::string* out) {
  out->append(R"({"id":)");
  AppendJsonString(names.id, out);
  out->append(R"(,"object":"text_completion","created":)");
  AppendJson(names.created, out);
  out->append(R"(,"model":)");
  AppendJsonString(names.model, out);
  out->append(R"(,"choices":[)");
}

void AppendUsage(const models::ItemUsage& usage, std::string* out) {
  absl::StrAppend(out, R"({"prompt_tokens":)", usage.input_tokens, R"(,"completion_tokens":)",
                  usage.output_tokens, R"(,"total_tokens":)",
                  usage.input_tokens + usage.output_tokens,
                  R"(,"prompt_tokens_details":{"cached_tokens":)", usage.cached_tokens,
                  R"(},"truncated_tokens":)", usage.truncated_tokens, "}");
}

std::string CompletionBody(const CompletionNames& names, const std::vector<Completed>& completed) {
  std::string body;
  AppendHead(names, &body);
  int index = 0;
  for (const Completed& item : completed) {
    const Piece* prompt = item.answer.prompt ? &*item.answer.prompt : nullptr;
    for (const Piece& sequence : item.answer.sequences) {
      Comma(&body);
      TextOffsets offsets;
      AppendChoice(names, Joined(prompt, sequence, index++), &offsets, &body);
    }
  }
  body += R"(],"usage":)";
  AppendUsage(TotalsOf(completed).usage, &body);
  body.push_back('}');
  return body;
}

}  // namespace longview::server
