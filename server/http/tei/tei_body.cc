#include "server/http/tei/tei_body.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"

namespace longview::server {

absl::StatusOr<TeiBody> ParseTei(std::string_view body, std::string_view query, size_t max_bytes) {
  ASSIGN_OR_RETURN(nlohmann::json object, ParseObject(body, max_bytes));
  TeiBody out;
  RETURN_IF_ERROR(ReadModelName(object, query, &out.model));
  out.object = std::move(object);
  return out;
}

absl::Status SpreadParameters(nlohmann::json& object,
                              absl::FunctionRef<bool(std::string_view)> known) {
  constexpr char kParameters[] = "parameters";
  const auto member = object.find(kParameters);
  if (member == object.end()) return absl::OkStatus();
  nlohmann::json parameters = std::move(*member);
  object.erase(member);
  if (!parameters.is_object()) {
    return FieldError(kParameters, absl::StrCat("expected an object, got ", Describe(parameters)));
  }
  for (auto&& [name, value] : parameters.items()) {
    const std::string field = absl::StrCat(kParameters, ".", name);
    if (!known(name) || name == kParameters) return FieldError(field, "unknown member");
    if (object.contains(name)) {
      return FieldError(field, absl::StrCat("given beside ", name, "; send one"));
    }
    object[name] = std::move(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadDirection(const nlohmann::json& value, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string given, ReadString(value, name));
  std::string direction = absl::AsciiStrToLower(given);
  if (direction == "left" || direction == "right") return direction;
  return FieldError(name, absl::StrCat(Quoted(given), " is not left or right"));
}

}  // namespace longview::server
