// Readers of members, most of them for tables: a value of one type, handed to what keeps it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/values.h"
#include "server/http/members.h"

namespace longview::server {

// A bool, a string, which is taken out of `value`, or a number.
template <typename T>
absl::StatusOr<T> TakeValue(nlohmann::json& value, const std::string& name) {
  if constexpr (std::is_same_v<T, bool>) {
    return ReadBool(value, name);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return TakeString(value, name);
  } else {
    return ReadNumber<T>(value, name);
  }
}

// Reads a value and hands it to `set`: Reads(+[](Body& body, bool flag) { ... }).
template <typename Out, typename T>
typename MemberRow<Out>::Reader Reads(void (*set)(Out&, T)) {
  return [set](nlohmann::json& value, const std::string& name, Out& out) {
    absl::StatusOr<T> read = TakeValue<T>(value, name);
    if (read.ok()) set(out, *std::move(read));
    return read.status();
  };
}

// Reads a string of at most 128 bytes, which is enough for any name and is copied into every item.
template <typename Out>
typename MemberRow<Out>::Reader ReadsName(void (*set)(Out&, std::string)) {
  return [set](nlohmann::json& value, const std::string& name, Out& out) -> absl::Status {
    constexpr size_t kLongest = 128;
    ASSIGN_OR_RETURN(std::string text, TakeString(value, name));
    if (text.size() > kLongest) {
      return FieldError(name, absl::StrCat("is ", Quoted(text), ", of ", text.size(),
                                           " bytes; the limit is ", kLongest));
    }
    set(out, std::move(text));
    return absl::OkStatus();
  };
}

// Reads a number of at least 1.
template <typename Out>
typename MemberRow<Out>::Reader ReadsCount(void (*set)(Out&, int32_t)) {
  return [set](nlohmann::json& value, const std::string& name, Out& out) -> absl::Status {
    ASSIGN_OR_RETURN(const int32_t count, ReadNumber<int32_t>(value, name));
    if (count < 1) return FieldError(name, absl::StrCat(count, " is below 1"));
    set(out, count);
    return absl::OkStatus();
  };
}

// Moves a value of any type out of the body, to be read once all others are.
template <typename Out>
typename MemberRow<Out>::Reader Keeps(nlohmann::json Out::*place) {
  return [place](nlohmann::json& value, const std::string&, Out& out) {
    out.*place = std::move(value);
    return absl::OkStatus();
  };
}

// A member that is read before the others, as the model's name is.
template <typename Out>
typename MemberRow<Out>::Reader ReadBefore() {
  return [](nlohmann::json&, const std::string&, Out&) { return absl::OkStatus(); };
}

// The member `model` of an object, else that field of the query; empty if neither is there.
// INVALID_ARGUMENT if it is no string or longer than a name can be.
absl::Status ReadModelName(const nlohmann::json& body, std::string_view query, std::string* model);

}  // namespace longview::server
