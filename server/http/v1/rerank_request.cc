#include "server/http/v1/rerank_request.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/http/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/model_member.h"

namespace longview::server {
namespace {

using longview::v1::RerankRequest;
using nlohmann::json;

// A string, or an object whose `text` is one.
absl::StatusOr<std::string> TakeDocument(json& document, const std::string& field) {
  if (!document.is_object()) return TakeString(document, field);
  for (const auto& [name, value] : document.items()) {
    if (name != "text") return FieldError(absl::StrCat(field, ".", name), "unknown member");
  }
  const std::string text = absl::StrCat(field, ".text");
  if (!document.contains("text")) return FieldError(text, "is missing");
  return TakeString(document["text"], text);
}

absl::Status ReadDocuments(json& documents, RerankRequest& out) {
  constexpr char kField[] = "documents";
  if (!IsArray(documents)) {
    return FieldError(kField, absl::StrCat("expected an array, got ", Describe(documents)));
  }
  if (documents.is_binary()) return FieldError(kField, "expected strings, got numbers");
  for (size_t i = 0; i < documents.size(); ++i) {
    absl::StatusOr<std::string> text =
        TakeDocument(documents[i], absl::StrCat(kField, "[", i, "]"));
    if (!text.ok()) return text.status();
    out.add_documents(*std::move(text));
  }
  return absl::OkStatus();
}

absl::Status ReadTruncateTokens(const std::string& name, const json& value, RerankRequest& out) {
  const absl::StatusOr<int32_t> number = ReadNumber<int32_t>(value, name);
  if (number.ok()) out.set_truncate_prompt_tokens(*number);
  return number.status();
}

absl::Status ReadTopN(const json& value, RerankRequest& out) {
  const absl::StatusOr<int32_t> number = ReadNumber<int32_t>(value, "top_n");
  if (!number.ok()) return number.status();
  if (*number < 1) return FieldError("top_n", absl::StrCat(*number, " is below 1"));
  out.set_top_n(*number);
  return absl::OkStatus();
}

// Members that may be null: they are left at their defaults.
bool MayBeNull(std::string_view name) {
  for (const std::string_view known :
       {"top_n", "truncation_direction", "return_documents", "raw_scores", "truncate",
        "truncate_prompt_tokens", "max_chunks_per_doc", "user"}) {
    if (name == known) return true;
  }
  return false;
}

absl::Status ReadMember(const std::string& name, json& value, RerankRequest& out) {
  if (name == "documents") return ReadDocuments(value, out);
  if (name == "top_n") return ReadTopN(value, out);
  if (name == "query" || name == "truncation_direction") {
    absl::StatusOr<std::string> text = TakeString(value, name);
    if (!text.ok()) return text.status();
    name == "query" ? out.set_query(*std::move(text))
                    : out.set_truncation_direction(*std::move(text));
    return absl::OkStatus();
  }
  const auto flag = [&](void (RerankRequest::*set)(bool)) {
    const absl::StatusOr<bool> given = ReadBool(value, name);
    if (given.ok()) (out.*set)(*given);
    return given.status();
  };
  if (name == "return_documents") return flag(&RerankRequest::set_return_documents);
  if (name == "raw_scores") return flag(&RerankRequest::set_raw_scores);
  if (name == "truncate") return flag(&RerankRequest::set_truncate);
  if (name == "truncate_prompt_tokens") return ReadTruncateTokens(name, value, out);
  if (name == "max_chunks_per_doc" || name == "user") return absl::OkStatus();
  return FieldError(name, "unknown member");
}

}  // namespace

absl::StatusOr<RerankRequest> ParseRerank(std::string_view text, size_t max_bytes) {
  absl::StatusOr<json> body = ParseJson(text, max_bytes);
  if (!body.ok()) return body.status();
  if (absl::Status status = ExpectObject(*body); !status.ok()) return status;
  RerankRequest out;
  if (absl::Status s = ReadModelName(*body, "", out.mutable_model()); !s.ok()) return s;
  for (const char* needed : {"query", "documents"}) {
    const auto member = body->find(needed);
    if (member == body->end() || member->is_null()) return FieldError(needed, "is missing");
  }
  for (auto& [name, value] : body->items()) {
    if (name == "model" || (value.is_null() && MayBeNull(name))) continue;
    if (absl::Status status = ReadMember(name, value, out); !status.ok()) return status;
  }
  return out;
}

}  // namespace longview::server
