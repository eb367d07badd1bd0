#include "server/http/tei/tei_body.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/model_member.h"

namespace longview::server {

absl::StatusOr<TeiBody> TeiBody::Parse(std::string_view body, std::string_view query,
                                       size_t max_bytes) {
  absl::StatusOr<nlohmann::json> object = ParseJson(body, max_bytes);
  if (!object.ok()) return object.status();
  if (absl::Status status = ExpectObject(*object); !status.ok()) return status;
  TeiBody out;
  if (absl::Status s = ReadModelName(*object, query, &out.model_); !s.ok()) return s;
  out.object_ = *std::move(object);
  return out;
}

nlohmann::json* TeiBody::Find(const char* name) {
  const auto member = object_.find(name);
  return member == object_.end() || member->is_null() ? nullptr : &*member;
}

absl::StatusOr<nlohmann::json*> TeiBody::Required(const char* name) {
  nlohmann::json* const member = Find(name);
  if (member == nullptr) return FieldError(name, "is missing");
  return member;
}

absl::StatusOr<TeiBody> TeiBody::Nested(const char* name) {
  TeiBody out;
  out.object_ = nlohmann::json::object();
  nlohmann::json* const member = Find(name);
  if (member == nullptr) return out;
  if (!member->is_object()) {
    return FieldError(name, absl::StrCat("expected an object, got ", Describe(*member)));
  }
  out.object_ = std::move(*member);
  return out;
}

absl::StatusOr<bool> TeiBody::Flag(const char* name, bool fallback) {
  const nlohmann::json* const member = Find(name);
  if (member == nullptr) return fallback;
  return ReadBool(*member, name);
}

absl::StatusOr<std::optional<bool>> TeiBody::OptionalFlag(const char* name) {
  if (Find(name) == nullptr) return std::nullopt;
  return Flag(name, false);
}

absl::StatusOr<std::optional<int32_t>> TeiBody::OptionalNumber(const char* name) {
  const nlohmann::json* const member = Find(name);
  if (member == nullptr) return std::nullopt;
  return ReadNumber<int32_t>(*member, name);
}

absl::StatusOr<std::string> TeiBody::Direction() {
  constexpr char kName[] = "truncation_direction";
  const nlohmann::json* const member = Find(kName);
  if (member == nullptr) return "";
  const absl::StatusOr<std::string> given = ReadString(*member, kName);
  if (!given.ok()) return given.status();
  std::string direction = absl::AsciiStrToLower(*given);
  if (direction == "left" || direction == "right") return direction;
  return FieldError(kName, absl::StrCat(Quoted(*given), " is not left or right"));
}

}  // namespace longview::server
