#include "server/http/tokens/tokenize_request.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"
#include "server/http/tei/tei_body.h"

namespace longview::server {
namespace {

using nlohmann::json;

constexpr const char* TextMember(TokenizeDialect dialect) {
  switch (dialect) {
    case TokenizeDialect::kTei:
      return kInputs;
    case TokenizeDialect::kVllm:
      return "prompt";
    case TokenizeDialect::kOwn:
      break;
  }
  return "text";
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

absl::Status ReadTexts(json& value, size_t max_texts, TokenizeRequest& out) {
  const std::string name = TextMember(out.dialect);
  if (value.is_string() || out.dialect != TokenizeDialect::kTei) {
    ASSIGN_OR_RETURN(std::string text, TakeString(value, name));
    out.texts.push_back(std::move(text));
  } else if (!IsArray(value)) {
    return FieldError(name, absl::StrCat("expected a string or strings, got ", Describe(value)));
  } else if (ArraySize(value) == 0 || ArraySize(value) > max_texts) {
    return FieldError(
        name, absl::StrCat("has ", ArraySize(value), " elements, expected 1 to ", max_texts));
  } else if (value.is_binary()) {
    return FieldError(name, "expected a string or strings, got numbers");
  } else {
    for (size_t i = 0; i < value.size(); ++i) {
      ASSIGN_OR_RETURN(std::string text, TakeString(value[i], absl::StrCat(name, "[", i, "]")));
      out.texts.push_back(std::move(text));
    }
  }
  size_t bytes = 0;
  for (const std::string& text : out.texts) bytes += text.size();
  if (bytes <= kMaxTokenizedBytes) return absl::OkStatus();
  return FieldError(
      name, absl::StrCat("has ", bytes, " bytes, the limit of this call is ", kMaxTokenizedBytes));
}

// A body whose texts are not read yet.
struct TokenizeBody {
  TokenizeRequest request;
  json texts;
};

using TokenizeTable = MemberTable<TokenizeBody>;

const TokenizeTable& OwnTokenizeTable() {
  using Body = TokenizeBody;
  static const auto* const table = new TokenizeTable{
      {"model", MemberOf::kLongview, ReadBefore<Body>()},
      {"text", MemberOf::kLongview, Keeps(&Body::texts)},
      {"add_special_tokens", MemberOf::kLongview,
       Reads(+[](Body& b, bool f) { b.request.add_special_tokens = f; })},
  };
  return *table;
}

const TokenizeTable& VllmTokenizeTable() {
  using Body = TokenizeBody;
  static const auto* const table = new TokenizeTable{
      {"model", MemberOf::kVllm, ReadBefore<Body>()},
      {"prompt", MemberOf::kVllm, Keeps(&Body::texts)},
      {"add_special_tokens", MemberOf::kVllm,
       Reads(+[](Body& b, bool f) { b.request.add_special_tokens = f; })},
  };
  return *table;
}

const TokenizeTable& TeiTokenizeTable() {
  using Body = TokenizeBody;
  static const auto* const table = new TokenizeTable{
      {"model", MemberOf::kLongview, ReadBefore<Body>()},
      {kInputs, MemberOf::kTei, Keeps(&Body::texts)},
      {"add_special_tokens", MemberOf::kTei,
       Reads(+[](Body& b, bool f) { b.request.add_special_tokens = f; })},
      {"parameters", MemberOf::kHuggingFace, ReadBefore<Body>()},
      {"prompt_name", MemberOf::kTei,
       Refused{"is not put in front of tokens; send the whole text"}},
  };
  return *table;
}

const TokenizeTable& TokenizeTableOf(TokenizeDialect dialect) {
  switch (dialect) {
    case TokenizeDialect::kTei:
      return TeiTokenizeTable();
    case TokenizeDialect::kVllm:
      return VllmTokenizeTable();
    case TokenizeDialect::kOwn:
      break;
  }
  return OwnTokenizeTable();
}

// text-embeddings-inference leaves aside what it does not know.
absl::Status ReadByDialect(json& body, TokenizeBody& out) {
  const TokenizeTable& table = TokenizeTableOf(out.request.dialect);
  const bool tei = out.request.dialect == TokenizeDialect::kTei;
  return tei ? ReadTei(table, body, out) : table.Read(body, out);
}

struct DetokenizeBody {
  DetokenizeRequest request;
  json tokens, ids;
};

const MemberTable<DetokenizeBody>& DetokenizeTable() {
  using Body = DetokenizeBody;
  static const auto* const table = new MemberTable<DetokenizeBody>{
      {"model", MemberOf::kVllm, ReadBefore<Body>()},
      {"tokens", MemberOf::kVllm, Keeps(&Body::tokens)},
      {"ids", MemberOf::kTei, Keeps(&Body::ids)},
      {"skip_special_tokens", MemberOf::kTei,
       Reads(+[](Body& b, bool f) { b.request.skip_special_tokens = f; })},
  };
  return *table;
}

}  // namespace

absl::StatusOr<TokenizeRequest> ParseTokenize(std::string_view text, std::string_view query,
                                              size_t max_texts, size_t max_bytes) {
  ASSIGN_OR_RETURN(json body, ParseObject(text, max_bytes));
  ASSIGN_OR_RETURN(const TokenizeDialect dialect, DialectOf(body));
  TokenizeBody out;
  out.request.dialect = dialect;
  RETURN_IF_ERROR(ReadModelName(body, query, &out.request.model));
  RETURN_IF_ERROR(ReadByDialect(body, out));
  RETURN_IF_ERROR(ReadTexts(out.texts, max_texts, out.request));
  return std::move(out.request);
}

absl::StatusOr<DetokenizeRequest> ParseDetokenize(std::string_view text, std::string_view query,
                                                  size_t max_bytes) {
  ASSIGN_OR_RETURN(json body, ParseObject(text, max_bytes));
  DetokenizeBody out;
  RETURN_IF_ERROR(ReadModelName(body, query, &out.request.model));
  RETURN_IF_ERROR(DetokenizeTable().Read(body, out));
  const bool ids = !out.ids.is_null();
  if (ids && !out.tokens.is_null()) return FieldError("ids", "given beside tokens; send one");
  const json& given = ids ? out.ids : out.tokens;
  if (given.is_null()) return FieldError("tokens", "is missing");
  RETURN_IF_ERROR(AppendNumbers(given, ids ? "ids" : "tokens", &out.request.ids));
  return std::move(out.request);
}

std::vector<MemberInfo> TokenizeMembers(TokenizeDialect dialect) {
  return TokenizeTableOf(dialect).infos();
}

std::vector<MemberInfo> DetokenizeMembers() { return DetokenizeTable().infos(); }

}  // namespace longview::server
