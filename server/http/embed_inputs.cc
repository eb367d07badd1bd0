#include "server/http/embed_inputs.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/http/body_error.h"
#include "server/http/json/values.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using nlohmann::json;

absl::Status ReadEmbedIds(const json& ids, const std::string& field, const EmbedRequest& like,
                          std::vector<EmbedRequest>& out) {
  std::vector<int32_t> values;
  if (absl::Status status = AppendNumbers(ids, field, &values); !status.ok()) return status;
  if (values.empty()) return FieldError(field, "has no tokens");
  out.push_back(like);
  out.back().mutable_token_ids()->Add(values.begin(), values.end());
  return absl::OkStatus();
}

// Jina's form of a text.
bool IsTextObject(const json& value) {
  return value.is_object() && value.size() == 1 && value.contains("text");
}

}  // namespace

absl::Status ReadEmbedText(json& value, const std::string& field, const EmbedRequest& like,
                           std::vector<EmbedRequest>& out) {
  absl::StatusOr<std::string> text = IsTextObject(value)
                                         ? TakeString(value["text"], absl::StrCat(field, ".text"))
                                         : TakeString(value, field);
  if (!text.ok()) return text.status();
  out.push_back(like);
  out.back().set_text(*std::move(text));
  return absl::OkStatus();
}

absl::Status ReadEmbedInputs(json& inputs, const std::string& field, const EmbedRequest& like,
                             std::vector<EmbedRequest>& out) {
  if (inputs.is_string() || IsTextObject(inputs)) return ReadEmbedText(inputs, field, like, out);
  if (!IsArray(inputs)) {
    return FieldError(field, absl::StrCat("expected a string, strings, token ids or lists of "
                                          "token ids, got ",
                                          Describe(inputs)));
  }
  if (ArraySize(inputs) == 0) return FieldError(field, "has no elements");
  if (inputs.is_binary() || inputs.front().is_number()) {
    return ReadEmbedIds(inputs, field, like, out);
  }
  if (inputs.size() > kMaxEmbeddingInputs) {
    return FieldError(field, absl::StrCat("has ", inputs.size(), " elements, the limit is ",
                                          kMaxEmbeddingInputs));
  }
  const bool ids = IsArray(inputs.front());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string element = absl::StrCat(field, "[", i, "]");
    absl::Status status = ids ? ReadEmbedIds(inputs[i], element, like, out)
                              : ReadEmbedText(inputs[i], element, like, out);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace longview::server
