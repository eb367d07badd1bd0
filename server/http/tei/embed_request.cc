#include "server/http/tei/embed_request.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/body_error.h"
#include "server/http/json/values.h"

namespace longview::server {

using longview::v1::EmbedRequest;
using nlohmann::json;

absl::StatusOr<EmbedRequest> ReadEmbedOptions(TeiBody& body) {
  EmbedRequest out;
  const absl::StatusOr<bool> normalize = body.Flag("normalize", true);
  if (!normalize.ok()) return normalize.status();
  out.set_normalize(*normalize);
  const absl::StatusOr<std::optional<bool>> truncate = body.OptionalFlag("truncate");
  if (!truncate.ok()) return truncate.status();
  if (*truncate) out.set_truncate(**truncate);
  absl::StatusOr<std::string> direction = body.Direction();
  if (!direction.ok()) return direction.status();
  out.set_truncation_direction(*std::move(direction));
  if (const json* name = body.Find("prompt_name")) {
    absl::StatusOr<std::string> prompt = ReadString(*name, "prompt_name");
    if (!prompt.ok()) return prompt.status();
    constexpr size_t kLongest = 128;  // It is copied into every item.
    if (prompt->size() > kLongest) {
      return FieldError("prompt_name",
                        absl::StrCat("has ", prompt->size(), " bytes, the limit is ", kLongest));
    }
    out.set_prompt_name(*std::move(prompt));
  }
  if (const json* dimensions = body.Find("dimensions")) {
    const absl::StatusOr<int32_t> number = ReadNumber<int32_t>(*dimensions, "dimensions");
    if (!number.ok()) return number.status();
    out.set_dimensions(*number);
  }
  return out;
}

absl::Status AddEmbedText(json& value, const std::string& field, const EmbedRequest& like,
                          EmbedListRequest& out) {
  absl::StatusOr<std::string> text = TakeString(value, field);
  if (!text.ok()) return text.status();
  out.items.push_back(like);
  out.items.back()->set_text(*std::move(text));
  return absl::OkStatus();
}

}  // namespace longview::server
