#include "server/http/embed_inputs.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/api/calls/copies.h"
#include "server/http/json/body_error.h"
#include "server/http/json/values.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using nlohmann::json;

absl::Status ReadEmbedIds(const json& ids, const std::string& field, EmbedRequest& out) {
  std::vector<int32_t> values;
  RETURN_IF_ERROR(AppendNumbers(ids, field, &values));
  if (values.empty()) return FieldError(field, "has no tokens");
  out.mutable_token_ids()->Add(values.begin(), values.end());
  return absl::OkStatus();
}

// Jina's form of a text.
bool IsTextObject(const json& value) {
  return value.is_object() && value.size() == 1 && value.contains("text");
}

}  // namespace

absl::Status ReadEmbedText(json& value, const std::string& field, EmbedRequest& out) {
  ASSIGN_OR_RETURN(std::string text, IsTextObject(value)
                                         ? TakeString(value["text"], absl::StrCat(field, ".text"))
                                         : TakeString(value, field));
  out.set_text(std::move(text));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EmbedRequest>> ReadLoneEmbedText(json& value, const std::string& field,
                                                            const Like<EmbedRequest>& like) {
  absl::StatusOr<std::vector<EmbedRequest>> one = like.Copies(1);
  if (!one.ok()) return one;
  RETURN_IF_ERROR(ReadEmbedText(value, field, one->front()));
  return one;
}

absl::StatusOr<std::vector<EmbedRequest>> ReadEmbedInputs(json& inputs, const std::string& field,
                                                          const Like<EmbedRequest>& like) {
  if (inputs.is_string() || IsTextObject(inputs)) return ReadLoneEmbedText(inputs, field, like);
  if (!IsArray(inputs)) {
    return FieldError(field, absl::StrCat("expected a string, strings, token ids or lists of "
                                          "token ids, got ",
                                          Describe(inputs)));
  }
  if (ArraySize(inputs) == 0) return FieldError(field, "has no elements");
  const bool one = inputs.is_binary() || inputs.front().is_number();
  if (!one && inputs.size() > kMaxEmbeddingInputs) {
    return FieldError(field, absl::StrCat("has ", inputs.size(), " elements, the limit is ",
                                          kMaxEmbeddingInputs));
  }
  absl::StatusOr<std::vector<EmbedRequest>> out = like.Copies(one ? 1 : inputs.size());
  if (!out.ok()) return out;
  if (one) {
    RETURN_IF_ERROR(ReadEmbedIds(inputs, field, out->front()));
    return out;
  }
  const bool ids = IsArray(inputs.front());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string element = absl::StrCat(field, "[", i, "]");
    RETURN_IF_ERROR(ids ? ReadEmbedIds(inputs[i], element, (*out)[i])
                        : ReadEmbedText(inputs[i], element, (*out)[i]));
  }
  return out;
}

}  // namespace longview::server
