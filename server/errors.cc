#include "server/errors.h"

#include <charconv>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "models/model.h"

namespace longview::server {
namespace {

constexpr char kPayloadUrl[] = "longview/error_detail";
constexpr size_t kQuotedBytes = 64;
constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// The payload is "reason\nretry\nparam": retry in microseconds, empty if none; param last,
// because only it may hold a line break.
std::string Encode(const ErrorDetail& detail) {
  std::string retry;
  if (detail.retry_after) retry = absl::StrCat(absl::ToInt64Microseconds(*detail.retry_after));
  return absl::StrCat(detail.reason, "\n", retry, "\n", detail.param);
}

ErrorDetail Decode(std::string_view text) {
  ErrorDetail detail;
  const size_t first = text.find('\n');
  const size_t second = text.find('\n', first + 1);
  detail.reason = text.substr(0, first);
  const std::string_view retry = text.substr(first + 1, second - first - 1);
  int64_t micros = 0;
  const auto [end, error] = std::from_chars(retry.data(), retry.data() + retry.size(), micros);
  if (!retry.empty() && error == std::errc()) detail.retry_after = absl::Microseconds(micros);
  detail.param = text.substr(second + 1);
  return detail;
}

// Bytes of the well-formed UTF-8 character `text` begins with; 0 if it begins with none.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and beyond U+10FFFF.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, std::string message, const ErrorDetail& detail) {
  absl::Status status(code, message);
  status.SetPayload(kPayloadUrl, absl::Cord(Encode(detail)));
  return status;
}

absl::Status ShuttingDownError() {
  return MakeError(absl::StatusCode::kUnavailable, "the server is shutting down",
                   {.reason = "SHUTTING_DOWN", .retry_after = absl::Seconds(1), .param = ""});
}

ErrorDetail GetErrorDetail(const absl::Status& status) {
  if (const auto payload = status.GetPayload(kPayloadUrl)) return Decode(std::string(*payload));
  const std::string_view undecodable = models::kUndecodableImage;
  if (status.GetPayload({undecodable.data(), undecodable.size()})) {
    return ErrorDetail{"UNDECODABLE_IMAGE", std::nullopt, ""};
  }
  return ErrorDetail{absl::StatusCodeToString(status.code()), std::nullopt, ""};
}

std::string Excerpt(std::string_view value) {
  std::string out;
  size_t i = 0;
  while (i < value.size()) {
    const size_t bytes = CharacterBytes(value.substr(i));
    const size_t step = bytes == 0 ? 1 : bytes;
    if (i + step > kQuotedBytes) break;
    const auto lead = static_cast<unsigned char>(value[i]);
    const bool control = bytes == 1 && (lead < 0x20 || lead == 0x7F);
    const bool c1_control =
        bytes == 2 && lead == 0xC2 && static_cast<unsigned char>(value[i + 1]) < 0xA0;
    if (bytes == 0 || control || c1_control) {
      out += kReplacement;
    } else {
      out += value.substr(i, bytes);
    }
    i += step;
  }
  if (i < value.size()) out += "...";
  return out;
}

std::string Quoted(std::string_view value) { return absl::StrCat("\"", Excerpt(value), "\""); }

}  // namespace longview::server
