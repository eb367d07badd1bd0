#include "server/http/v1/completions_format.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/http/json/body_error.h"
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

// JSON of text: most characters are themselves.
size_t JsonBytes(size_t text) { return text + text / 4; }

size_t PieceBytes(const CompletionNames& names, const Piece& piece) {
  constexpr size_t kNumber = 12;
  size_t bytes = JsonBytes(piece.text.size());
  if (!names.logprobs) return bytes;
  for (const TokenLogprob& token : piece.logprobs) {
    bytes += JsonBytes(token.bytes.size()) + 2 * kNumber;
  }
  if (!names.alternatives) return bytes;
  for (const std::vector<TokenLogprob>& alternatives : piece.top) {
    for (const TokenLogprob& token : alternatives) {
      bytes += JsonBytes(token.bytes.size()) + kNumber;
    }
  }
  return bytes;
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

ChoiceWriter::ChoiceWriter(const CompletionNames& names, std::vector<const Piece*> pieces,
                           int index, TextOffsets* offsets)
    : names_(names), pieces_(std::move(pieces)), index_(index), offsets_(offsets) {}

bool ChoiceWriter::Append(size_t most, std::string* out) {
  const size_t end = out->size() + most;
  while (stage_ != Stage::kWritten && out->size() < end) Step(out);
  return stage_ != Stage::kWritten;
}

const TokenLogprob* ChoiceWriter::Next() {
  if (cut_) return nullptr;
  while (piece_ < pieces_.size() && token_ == pieces_[piece_]->logprobs.size()) {
    ++piece_;
    token_ = 0;
  }
  return piece_ < pieces_.size() ? &pieces_[piece_]->logprobs[token_++] : nullptr;
}

void ChoiceWriter::Go(Stage stage, std::string_view between, std::string* out) {
  out->append(between);
  stage_ = stage;
  piece_ = token_ = 0;
  first_ = true;
}

void ChoiceWriter::Separate(std::string* out) {
  if (!std::exchange(first_, false)) out->push_back(',');
}

void ChoiceWriter::Begin(std::string* out) {
  out->append(R"({"index":)");
  AppendJson(int64_t{index_}, out);
  out->append(R"(,"text":)");
  std::string joined;
  if (pieces_.size() > 1) {
    for (const Piece* piece : pieces_) joined += piece->text;
  }
  AppendJsonString(pieces_.size() > 1 ? joined : pieces_.front()->text, out);
  out->append(R"(,"logprobs":)");
  if (names_.logprobs) return Go(Stage::kTokens, R"({"tokens":[)", out);
  Go(Stage::kEnd, "null", out);
}

void ChoiceWriter::Step(std::string* out) {
  if (stage_ == Stage::kBegin) return Begin(out);
  if (stage_ == Stage::kEnd) return End(out);
  if (const TokenLogprob* const token = Next()) {
    Separate(out);
    return AppendToken(*token, out);
  }
  switch (stage_) {
    case Stage::kTokens:
      return Go(Stage::kLogprobs, R"(],"token_logprobs":[)", out);
    case Stage::kLogprobs:
      if (names_.alternatives) return Go(Stage::kAlternatives, R"(],"top_logprobs":[)", out);
      return Go(Stage::kOffsets, R"(],"top_logprobs":null,"text_offset":[)", out);
    case Stage::kAlternatives:
      return Go(Stage::kOffsets, R"(],"text_offset":[)", out);
    default:
      return Go(Stage::kEnd, "]}", out);
  }
}

void ChoiceWriter::AppendToken(const TokenLogprob& token, std::string* out) {
  switch (stage_) {
    case Stage::kTokens:
      return AppendJsonString(TokenText(token), out);
    case Stage::kLogprobs:
      return AppendJson(token.logprob, out);  // null for the first of all.
    case Stage::kAlternatives: {
      const auto& top = pieces_[piece_]->top;
      const size_t taken = token_ - 1;
      static const std::vector<TokenLogprob> kNone;
      return AppendAlternatives(taken < top.size() ? top[taken] : kNone, token, out);
    }
    default:
      return AppendJson(offsets_->Next(token.bytes), out);
  }
}

void ChoiceWriter::End(std::string* out) {
  out->append(R"(,"finish_reason":)");
  const std::string& reason = pieces_.back()->finish_reason;
  if (reason.empty() || cut_) {
    out->append("null");
  } else {
    AppendJsonString(reason, out);
  }
  Go(Stage::kWritten, "}", out);
}

void AppendChoice(const CompletionNames& names, const Piece& piece, TextOffsets* offsets,
                  std::string* out) {
  ChoiceWriter writer(names, {&piece}, piece.index, offsets);
  while (writer.Append(std::numeric_limits<uint32_t>::max(), out)) {
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

size_t CompletionBytes(const CompletionNames& names, const std::vector<Completed>& completed) {
  constexpr size_t kChoice = 128;
  size_t bytes = kChoice;
  for (const Completed& item : completed) {
    const size_t prompt = item.answer.prompt ? PieceBytes(names, *item.answer.prompt) : 0;
    for (const Piece& sequence : item.answer.sequences) {
      bytes += kChoice + prompt + PieceBytes(names, sequence);
    }
  }
  return bytes;
}

absl::StatusOr<std::string> CompletionBody(const CompletionNames& names,
                                           const std::vector<Completed>& completed, size_t limit) {
  constexpr size_t kPart = 256 << 10;
  std::string body;
  body.reserve(std::min(CompletionBytes(names, completed), limit + kPart));
  AppendHead(names, &body);
  int index = 0;
  for (const Completed& item : completed) {
    for (const Piece& sequence : item.answer.sequences) {
      if (index > 0) body.push_back(',');
      std::vector<const Piece*> pieces;
      if (item.answer.prompt) pieces.push_back(&*item.answer.prompt);
      pieces.push_back(&sequence);
      TextOffsets offsets;
      ChoiceWriter writer(names, std::move(pieces), index++, &offsets);
      while (writer.Append(kPart, &body)) {
        if (body.size() > limit) return AnswerTooLarge(body.size(), limit);
      }
    }
  }
  body += R"(],"usage":)";
  AppendUsage(TotalsOf(completed).usage, &body);
  body.push_back('}');
  if (body.size() > limit) return AnswerTooLarge(body.size(), limit);
  return body;
}

}  // namespace longview::server
