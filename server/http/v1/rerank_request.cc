#include "models/status_macros.h"
#include "server/http/v1/rerank.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"

namespace longview::server {
namespace {

using longview::v1::RerankRequest;
using nlohmann::json;

constexpr char kDocuments[] = "documents";

// A body whose documents are not read yet.
struct ParsedRerank {
  RerankBody body;
  json documents;
  std::vector<std::string> rank_fields;
};

absl::Status ReadRankFields(json& value, const std::string& name, ParsedRerank& out) {
  constexpr size_t kMost = 64;  // Looked up in every document.
  if (!value.is_array() || value.size() > kMost) {
    return FieldError(name,
                      absl::StrCat("expected at most ", kMost, " strings, got ", Describe(value)));
  }
  for (size_t i = 0; i < value.size(); ++i) {
    ASSIGN_OR_RETURN(std::string field, TakeString(value[i], absl::StrCat(name, "[", i, "]")));
    out.rank_fields.push_back(std::move(field));
  }
  return absl::OkStatus();
}

const MemberTable<ParsedRerank>& RerankTable() {
  using enum MemberOf;
  static const auto* const table = new MemberTable<ParsedRerank>{
      {"model", kJina, ReadBefore<ParsedRerank>()},
      {"query", kJina,
       Reads(+[](ParsedRerank& p, std::string q) { p.body.request.set_query(std::move(q)); })},
      {kDocuments, kJina, Keeps(&ParsedRerank::documents)},
      {"top_n", kJina,
       ReadsCount(+[](ParsedRerank& p, int32_t n) { p.body.request.set_top_n(n); })},
      {"return_documents", kJina,
       Reads(+[](ParsedRerank& p, bool f) { p.body.request.set_return_documents(f); })},
      {"rank_fields", kCohere, ReadRankFields},
      {"max_tokens_per_doc", kCohere,
       Reads(+[](ParsedRerank& p, int32_t n) { p.body.request.set_max_tokens_per_doc(n); })},
      {"max_chunks_per_doc", kCohere, NoEffect{}},
      {"priority", kCohere, NoEffect{}},
      {"relevant_spans", kCohere, Refused{"spans of documents are not served"}},
      {"truncate_prompt_tokens", kVllm,
       Reads(+[](ParsedRerank& p, int32_t n) { p.body.request.set_truncate_prompt_tokens(n); })},
      {"user", kVllm, NoEffect{}},
      {"raw_scores", kLongview,
       Reads(+[](ParsedRerank& p, bool f) { p.body.request.set_raw_scores(f); })},
      {"truncate", kLongview,
       Reads(+[](ParsedRerank& p, bool f) { p.body.request.set_truncate(f); })},
      {"truncation_direction", kLongview, Reads(+[](ParsedRerank& p, std::string d) {
         p.body.request.set_truncation_direction(std::move(d));
       })},
  };
  return *table;
}

// The values of the members that `rank_fields` names, in its order; "" if there are none.
std::string RankedText(const json& document, const std::vector<std::string>& rank_fields) {
  std::string text;
  for (const std::string& field : rank_fields) {
    const auto member = document.find(field);
    if (member == document.end()) continue;
    if (!text.empty()) text.push_back('\n');
    text += member->is_string() ? member->get_ref<const std::string&>() : member->dump();
  }
  return text;
}

// A string, or an object with a text.
absl::StatusOr<std::string> TextOf(json& document, const std::string& field,
                                   const std::vector<std::string>& rank_fields) {
  if (!document.is_object()) return TakeString(document, field);
  std::string ranked = RankedText(document, rank_fields);
  if (!ranked.empty()) return ranked;
  const std::string text = absl::StrCat(field, ".text");
  const auto member = document.find("text");
  if (member == document.end()) return FieldError(text, "is missing");
  return TakeString(*member, text);
}

absl::Status ReadDocuments(ParsedRerank& parsed) {
  json& documents = parsed.documents;
  if (!IsArray(documents)) {
    return FieldError(kDocuments, absl::StrCat("expected an array, got ", Describe(documents)));
  }
  if (documents.is_binary()) return FieldError(kDocuments, "expected strings, got numbers");
  RerankBody& out = parsed.body;
  const bool returned = out.request.return_documents();
  for (size_t i = 0; i < documents.size(); ++i) {
    if (returned) out.as_sent.push_back(documents[i].is_object() ? documents[i].dump() : "");
    ASSIGN_OR_RETURN(std::string text, TextOf(documents[i], absl::StrCat(kDocuments, "[", i, "]"),
                                              parsed.rank_fields));
    out.request.add_documents(std::move(text));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RerankBody> ReadRerank(json body, std::string_view query) {
  RETURN_IF_ERROR(ExpectObject(body));
  ParsedRerank out;
  RETURN_IF_ERROR(ReadModelName(body, query, out.body.request.mutable_model()));
  for (const char* needed : {"query", kDocuments}) {
    if (!body.contains(needed)) return FieldError(needed, "is missing");
  }
  RETURN_IF_ERROR(RerankTable().Read(body, out));
  RETURN_IF_ERROR(ReadDocuments(out));
  return std::move(out.body);
}

absl::StatusOr<RerankBody> ParseRerank(std::string_view text, size_t max_bytes) {
  ASSIGN_OR_RETURN(json body, ParseJson(text, max_bytes));
  return ReadRerank(std::move(body), "");
}

std::vector<MemberInfo> RerankMembers() { return RerankTable().infos(); }

}  // namespace longview::server
