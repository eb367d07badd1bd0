#include "server/http/v1/multipart.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"

namespace longview::server {
namespace {

constexpr size_t kMaxParts = 64;

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool SameName(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase(absl::string_view(a.data(), a.size()),
                                absl::string_view(b.data(), b.size()));
}

absl::Status Malformed(std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   std::string("the multipart body is malformed: ").append(problem),
                   {.reason = "BAD_BODY", .retry_after = {}, .param = ""});
}

// The name a part's head gives it; "" if it has none.
std::string_view PartName(std::string_view head) {
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    head = end == std::string_view::npos ? std::string_view() : head.substr(end + 2);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && SameName(line.substr(0, colon), "Content-Disposition")) {
      return FieldParameter(line.substr(colon + 1), "name");
    }
  }
  return {};
}

}  // namespace

std::string_view FieldParameter(std::string_view field, std::string_view name) {
  for (size_t at = field.find(';'); at != std::string_view::npos;) {
    field.remove_prefix(at + 1);
    // A quoted value may hold semicolons.
    const size_t equals = field.find('=');
    const size_t semicolon = field.find(';');
    if (equals == std::string_view::npos) return {};
    if (semicolon < equals) {
      at = semicolon;
      continue;
    }
    const std::string_view key = Trim(field.substr(0, equals));
    std::string_view value = field.substr(equals + 1);
    size_t end;
    if (value.starts_with('"')) {
      const size_t close = value.find('"', 1);
      if (close == std::string_view::npos) return {};
      end = value.find(';', close);
      value = value.substr(1, close - 1);
      at = end == std::string_view::npos ? end : equals + 1 + end;
    } else {
      end = value.find(';');
      at = end == std::string_view::npos ? end : equals + 1 + end;
      value = Trim(value.substr(0, end));
    }
    if (SameName(key, name)) return value;
  }
  return {};
}

absl::StatusOr<HttpFields> ParseMultipart(std::string_view content_type, std::string_view body) {
  const std::string_view boundary = FieldParameter(content_type, "boundary");
  if (boundary.empty()) return Malformed("header Content-Type names no boundary");
  const std::string delimiter = std::string("--").append(boundary);
  // Bytes before the first delimiter are a preamble without meaning.
  const bool at_start = body.starts_with(delimiter);
  const size_t first = at_start ? 0 : body.find("\r\n" + delimiter);
  if (first == std::string_view::npos) return Malformed("its boundary never appears");
  body.remove_prefix(first + (at_start ? 0 : 2) + delimiter.size());

  HttpFields parts;
  const std::string next_delimiter = "\r\n" + delimiter;
  while (!body.starts_with("--")) {
    if (parts.size() == kMaxParts) {
      return Malformed(absl::StrCat("more than ", kMaxParts, " parts"));
    }
    const size_t line_end = body.find("\r\n");
    if (line_end == std::string_view::npos) return Malformed("it ends within a boundary");
    body.remove_prefix(line_end);
    const size_t head_end = body.find("\r\n\r\n");
    if (head_end == std::string_view::npos) return Malformed("it ends within a part's head");
    const std::string_view name =
        PartName(body.substr(0, head_end).substr(std::min<size_t>(2, head_end)));
    if (name.empty()) {
      return Malformed(absl::StrCat("part ", parts.size(), " has no name"));
    }
    body.remove_prefix(head_end + 4);
    const size_t content_end = body.find(next_delimiter);
    if (content_end == std::string_view::npos) return Malformed("its last boundary is missing");
    parts.emplace_back(name, body.substr(0, content_end));
    body.remove_prefix(content_end + next_delimiter.size());
  }
  return parts;
}

}  // namespace longview::server
