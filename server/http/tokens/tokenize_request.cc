#include "server/http/tokens/tokenize_request.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/http/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/model_member.h"

namespace longview::server {
namespace {

using nlohmann::json;

constexpr const char* TextMember(TokenizeDialect dialect) {
  switch (dialect) {
    case TokenizeDialect::kTei:
      return "inputs";
    case TokenizeDialect::kVllm:
      return "prompt";
    case TokenizeDialect::kOwn:
      break;
  }
  return "text";
}

absl::StatusOr<json> ParseObject(std::string_view text, size_t max_bytes) {
  absl::StatusOr<json> body = ParseJson(text, max_bytes);
  if (!body.ok()) return body;
  if (absl::Status status = ExpectObject(*body); !status.ok()) return status;
  return body;
}

absl::StatusOr<TokenizeDialect> DialectOf(const json& body) {
  std::optional<TokenizeDialect> found;
  for (const auto dialect :
       {TokenizeDialect::kOwn, TokenizeDialect::kTei, TokenizeDialect::kVllm}) {
    if (!body.contains(TextMember(dialect))) continue;
    if (found) return FieldError(TextMember(dialect), "given beside another text; send one");
    found = dialect;
  }
  if (!found) return FieldError("text", "is missing; text, inputs or prompt holds it");
  return *found;
}

absl::Status ReadFlag(json& body, const char* name, bool& out) {
  const auto member = body.find(name);
  if (member == body.end() || member->is_null()) return absl::OkStatus();
  const absl::StatusOr<bool> flag = ReadBool(*member, name);
  if (flag.ok()) out = *flag;
  return flag.status();
}

absl::Status ReadTexts(json& value, size_t max_texts, TokenizeRequest& out) {
  const std::string name = TextMember(out.dialect);
  if (value.is_string() || out.dialect != TokenizeDialect::kTei) {
    absl::StatusOr<std::string> text = TakeString(value, name);
    if (!text.ok()) return text.status();
    out.texts.push_back(*std::move(text));
  } else if (!IsArray(value)) {
    return FieldError(name, absl::StrCat("expected a string or strings, got ", Describe(value)));
  } else if (ArraySize(value) == 0 || ArraySize(value) > max_texts) {
    return FieldError(
        name, absl::StrCat("has ", ArraySize(value), " elements, expected 1 to ", max_texts));
  } else if (value.is_binary()) {
    return FieldError(name, "expected a string or strings, got numbers");
  } else {
    for (size_t i = 0; i < value.size(); ++i) {
      absl::StatusOr<std::string> text = TakeString(value[i], absl::StrCat(name, "[", i, "]"));
      if (!text.ok()) return text.status();
      out.texts.push_back(*std::move(text));
    }
  }
  size_t bytes = 0;
  for (const std::string& text : out.texts) bytes += text.size();
  if (bytes <= kMaxTokenizedBytes) return absl::OkStatus();
  return FieldError(
      name, absl::StrCat("has ", bytes, " bytes, the limit of this call is ", kMaxTokenizedBytes));
}

absl::Status RefuseOthers(const json& body, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : body.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return FieldError(name, "unknown member");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizeRequest> ParseTokenize(std::string_view text, std::string_view query,
                                              size_t max_texts, size_t max_bytes) {
  absl::StatusOr<json> body = ParseObject(text, max_bytes);
  if (!body.ok()) return body.status();
  const absl::StatusOr<TokenizeDialect> dialect = DialectOf(*body);
  if (!dialect.ok()) return dialect.status();
  TokenizeRequest out;
  out.dialect = *dialect;
  if (absl::Status s = ReadModelName(*body, query, &out.model); !s.ok()) return s;
  if (absl::Status s = ReadFlag(*body, "add_special_tokens", out.add_special_tokens); !s.ok()) {
    return s;
  }
  // text-embeddings-inference ignores what it does not know.
  if (*dialect != TokenizeDialect::kTei) {
    absl::Status known = RefuseOthers(*body, {"model", TextMember(*dialect), "add_special_tokens"});
    if (!known.ok()) return known;
  }
  absl::Status read = ReadTexts((*body)[TextMember(*dialect)], max_texts, out);
  if (!read.ok()) return read;
  return out;
}

absl::StatusOr<DetokenizeRequest> ParseDetokenize(std::string_view text, std::string_view query,
                                                  size_t max_bytes) {
  absl::StatusOr<json> body = ParseObject(text, max_bytes);
  if (!body.ok()) return body.status();
  DetokenizeRequest out;
  if (absl::Status s = ReadModelName(*body, query, &out.model); !s.ok()) return s;
  if (absl::Status s = ReadFlag(*body, "skip_special_tokens", out.skip_special_tokens); !s.ok()) {
    return s;
  }
  absl::Status known = RefuseOthers(*body, {"model", "tokens", "ids", "skip_special_tokens"});
  if (!known.ok()) return known;
  const bool ids = body->contains("ids");
  if (ids && body->contains("tokens")) return FieldError("ids", "given beside tokens; send one");
  const char* name = ids ? "ids" : "tokens";
  const auto member = body->find(name);
  if (member == body->end()) return FieldError(name, "is missing");
  if (absl::Status s = AppendNumbers(*member, name, &out.ids); !s.ok()) return s;
  return out;
}

}  // namespace longview::server
