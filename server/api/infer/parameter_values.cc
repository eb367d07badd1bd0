#include "server/api/infer/parameter_values.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace longview::server {

using inference::InferParameter;

std::string ValueText(const InferParameter& value) {
  switch (value.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return value.bool_param() ? "true" : "false";
    case InferParameter::kInt64Param:
      return absl::StrCat(value.int64_param());
    case InferParameter::kUint64Param:
      return absl::StrCat(value.uint64_param());
    case InferParameter::kDoubleParam:
      return absl::StrCat(value.double_param());
    case InferParameter::kStringParam:
      return Quoted(value.string_param());
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return "empty";
}

std::optional<bool> AsBool(const InferParameter& value) {
  const std::string text = ValueText(value);
  if (value.has_string_param()) {
    if (absl::EqualsIgnoreCase(value.string_param(), "true") || value.string_param() == "1") {
      return true;
    }
    if (absl::EqualsIgnoreCase(value.string_param(), "false") || value.string_param() == "0") {
      return false;
    }
    return std::nullopt;
  }
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

std::optional<int64_t> AsInteger(const InferParameter& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  switch (value.parameter_choice_case()) {
    case InferParameter::kInt64Param:
      return value.int64_param();
    case InferParameter::kUint64Param:
      if (value.uint64_param() > std::numeric_limits<int64_t>::max()) return std::nullopt;
      return static_cast<int64_t>(value.uint64_param());
    case InferParameter::kDoubleParam: {
      const double number = value.double_param();
      if (!(std::abs(number) <= kExact) || number != std::floor(number)) return std::nullopt;
      return static_cast<int64_t>(number);
    }
    case InferParameter::kStringParam: {
      const std::string& text = value.string_param();
      int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
      return number;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace longview::server
