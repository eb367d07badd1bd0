#include "server/http/cohere/embed_request.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/api/calls/copies.h"
#include "server/errors.h"
#include "server/http/embed_inputs.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using nlohmann::json;

constexpr char kCohereTexts[] = "texts";

// A body whose texts are not read yet: they go into copies of `like`.
struct CohereEmbedBody {
  Like<EmbedRequest> like;
  json texts;
  std::vector<VectorForm> forms;
  std::optional<int32_t> max_tokens;
};

absl::Status ReadTypes(json& value, const std::string& name, CohereEmbedBody& out) {
  constexpr VectorForm kKnown[] = {VectorForm::kFloat,  VectorForm::kInt8,    VectorForm::kUint8,
                                   VectorForm::kBinary, VectorForm::kUbinary, VectorForm::kBase64};
  if (!value.is_array() || value.empty()) {
    return FieldError(name, absl::StrCat("expected strings, got ", Describe(value)));
  }
  for (size_t i = 0; i < value.size(); ++i) {
    ASSIGN_OR_RETURN(const auto form,
                     ReadVectorForm(value[i], absl::StrCat(name, "[", i, "]"), kKnown));
    const bool again = std::find(out.forms.begin(), out.forms.end(), form) != out.forms.end();
    if (!again) out.forms.push_back(form);
  }
  return absl::OkStatus();
}

// END cuts the end of a text off, START its beginning; NONE makes a text that is too long an error.
absl::Status ReadCohereTruncate(json& value, const std::string& name, CohereEmbedBody& out) {
  ASSIGN_OR_RETURN(const std::string which, ReadString(value, name));
  if (which != "NONE" && which != "START" && which != "END") {
    return FieldError(name, absl::StrCat("is ", Quoted(which), ", expected NONE, START or END"));
  }
  out.like->set_truncate(which != "NONE");
  if (which == "START") out.like->set_truncation_direction("left");
  if (which == "END") out.like->set_truncation_direction("right");
  return absl::OkStatus();
}

const MemberTable<CohereEmbedBody>& CohereEmbedTable() {
  using enum MemberOf;
  using Body = CohereEmbedBody;
  static const auto* const table = new MemberTable<CohereEmbedBody>{
      {"model", kCohere, ReadBefore<Body>()},
      {kCohereTexts, kCohere, Keeps(&Body::texts)},
      {"input_type", kCohere,
       ReadsName(+[](Body& b, std::string t) { b.like->set_input_type(std::move(t)); })},
      {"embedding_types", kCohere, ReadTypes},
      {"truncate", kCohere, ReadCohereTruncate},
      {"output_dimension", kCohere, Reads(+[](Body& b, int32_t n) { b.like->set_dimensions(n); })},
      {"max_tokens", kCohere, Reads(+[](Body& b, int32_t n) { b.max_tokens = n; })},
      {"priority", kCohere, NoEffect{}},
      {"images", kCohere, Refused{"are not embedded; send texts"}},
      {"inputs", kCohere, Refused{"are not read; send texts"}},
  };
  return *table;
}

absl::Status ReadCohereTexts(CohereEmbedBody& body, CohereEmbedRequest& out) {
  json& texts = body.texts;
  if (texts.is_null()) return FieldError(kCohereTexts, "is missing");
  if (!texts.is_array() || texts.empty() || texts.size() > kMaxEmbeddingInputs) {
    return FieldError(kCohereTexts, absl::StrCat("expected 1 to ", kMaxEmbeddingInputs,
                                                 " strings, got ", Describe(texts)));
  }
  ASSIGN_OR_RETURN(std::vector<EmbedRequest> items, body.like.Copies(texts.size()));
  out.items = std::move(items);
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string field = absl::StrCat(kCohereTexts, "[", i, "]");
    if (auto s = ReadEmbedText(texts[i], field, out.items[i]); !s.ok()) return s;
    out.texts.push_back(out.items[i].text());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CohereEmbedRequest> ParseCohereEmbed(std::string_view text, size_t max_bytes) {
  ASSIGN_OR_RETURN(json object, ParseObject(text, max_bytes));
  CohereEmbedRequest out;
  RETURN_IF_ERROR(ReadModelName(object, "", &out.model));
  CohereEmbedBody body;
  RETURN_IF_ERROR(CohereEmbedTable().Read(object, body));
  if (body.max_tokens) {
    if (!body.like->truncate()) return FieldError("max_tokens", "goes with truncate START or END");
    body.like->set_truncate_prompt_tokens(*body.max_tokens);
  }
  out.forms = std::move(body.forms);
  RETURN_IF_ERROR(ReadCohereTexts(body, out));
  return out;
}

std::vector<MemberInfo> CohereEmbedMembers() { return CohereEmbedTable().infos(); }

}  // namespace longview::server
