#include "server/http/v1/late_chunking.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;

constexpr char kLate[] = "late_chunking";

// REQUIRES: UTF-8.
int CodePointsOf(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Whether a word would go on from the first text into the second.
bool GrowTogether(std::string_view first, std::string_view second) {
  const auto space = [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); };
  return !first.empty() && !second.empty() && !space(first.back()) && !space(second.front());
}

}  // namespace

absl::StatusOr<EmbedRequest> JoinToDocument(std::vector<EmbedRequest> texts) {
  EmbedRequest document = texts.front();
  std::string text;
  int at = 0;  // Code points of `text`.
  for (EmbedRequest& part : texts) {
    if (part.token_ids_size() > 0) return FieldError(kLate, "goes with texts, not with token ids");
    if (GrowTogether(text, part.text())) {
      text.push_back(' ');
      ++at;
    }
    longview::v1::TextRange* const chunk = document.add_chunks();
    chunk->set_start(at);
    at += CodePointsOf(part.text());
    chunk->set_end(at);
    text += part.text();
    part.clear_text();
  }
  document.set_text(std::move(text));
  return document;
}

absl::Status OfLateInputs(const absl::Status& status) {
  constexpr std::string_view kChunks = "chunks";
  const std::string message(status.message());
  if (!message.starts_with(kChunks)) return status;
  const std::string rest = message.substr(kChunks.size());
  ErrorDetail detail = GetErrorDetail(status);
  detail.param = rest.starts_with('[') ? "input" : kLate;
  return MakeError(status.code(), absl::StrCat(detail.param, rest), detail);
}

}  // namespace longview::server
