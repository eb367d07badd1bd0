#include "server/http/json/values.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"

namespace longview::server {
namespace {

using nlohmann::json;

template <typename T>
constexpr const char* NameOf() {
  if constexpr (std::is_same_v<T, int32_t>) return "a 32-bit integer";
  if constexpr (std::is_same_v<T, uint32_t>) return "an unsigned 32-bit integer";
  if constexpr (std::is_same_v<T, int64_t>) return "a 64-bit integer";
  if constexpr (std::is_same_v<T, uint64_t>) return "an unsigned 64-bit integer";
  if constexpr (std::is_floating_point_v<T>) return "a number";
}

// Whether `value` of any numeric type is a T, kept in `out`.
template <typename T, typename From>
bool Convert(From value, T* out) {
  if constexpr (std::is_floating_point_v<T>) {
    *out = static_cast<T>(value);
    return std::isfinite(*out);
  } else if constexpr (std::is_floating_point_v<From>) {
    return false;
  } else {
    *out = static_cast<T>(value);
    return std::in_range<T>(value);
  }
}

template <typename T>
bool ConvertValue(const json& value, T* out) {
  switch (value.type()) {
    case json::value_t::number_integer:
      return Convert(value.get<int64_t>(), out);
    case json::value_t::number_unsigned:
      return Convert(value.get<uint64_t>(), out);
    case json::value_t::number_float:
      return Convert(value.get<double>(), out);
    default:
      return false;
  }
}

template <typename T>
absl::Status BadElement(std::string_view field, size_t index, const std::string& value) {
  return FieldError(field,
                    absl::StrCat("element ", index, " is ", value, ", expected ", NameOf<T>()));
}

// Elements of a lifted array, `From` being what it holds.
template <typename From, typename T>
absl::Status AppendLifted(const json::binary_t& bytes, std::string_view field,
                          std::vector<T>* out) {
  const size_t count = bytes.size() / sizeof(From);
  const size_t before = out->size();
  out->resize(before + count);
  T* to = out->data() + before;
  if constexpr (std::is_same_v<From, T>) {
    std::memcpy(to, bytes.data(), count * sizeof(T));
  } else {
    for (size_t i = 0; i < count; ++i) {
      From value;
      std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
      if (!Convert(value, to + i)) return BadElement<T>(field, i, absl::StrCat(value));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string Describe(const json& value) {
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (IsArray(value)) return absl::StrCat("an array of ", ArraySize(value));
  if (value.is_object()) return "an object";
  return value.dump();
}

bool IsArray(const json& value) { return value.is_array() || value.is_binary(); }

size_t ArraySize(const json& value) {
  if (value.is_binary()) return value.get_binary().size() / sizeof(int64_t);
  return value.size();
}

template <typename T>
absl::Status AppendNumbers(const json& array, std::string_view field, std::vector<T>* out) {
  if (array.is_binary()) {
    const json::binary_t& bytes = array.get_binary();
    if (bytes.subtype() == kInt64Array) return AppendLifted<int64_t>(bytes, field, out);
    return AppendLifted<double>(bytes, field, out);
  }
  if (!array.is_array()) {
    return FieldError(field, absl::StrCat("expected an array, got ", Describe(array)));
  }
  out->reserve(out->size() + array.size());
  for (size_t i = 0; i < array.size(); ++i) {
    T value;
    if (!ConvertValue(array[i], &value)) return BadElement<T>(field, i, Describe(array[i]));
    out->push_back(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ReadBool(const json& value, std::string_view field) {
  if (value.is_boolean()) return value.get<bool>();
  return FieldError(field, absl::StrCat("expected true or false, got ", Describe(value)));
}

absl::StatusOr<std::string> TakeString(json& value, std::string_view field) {
  if (value.is_string()) return std::move(value.get_ref<std::string&>());
  return FieldError(field, absl::StrCat("expected a string, got ", Describe(value)));
}

absl::StatusOr<std::string> ReadString(const json& value, std::string_view field) {
  if (value.is_string()) return value.get<std::string>();
  return FieldError(field, absl::StrCat("expected a string, got ", Describe(value)));
}

template <typename T>
absl::StatusOr<T> ReadNumber(const json& value, std::string_view field) {
  T out;
  if (ConvertValue(value, &out)) return out;
  return FieldError(field, absl::StrCat("expected ", NameOf<T>(), ", got ", Describe(value)));
}

absl::Status ExpectObject(const json& body) {
  if (body.is_object()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("the body must be a JSON object, got ", Describe(body)),
                   {.reason = "INVALID_ARGUMENT", .retry_after = {}, .param = ""});
}

template absl::Status AppendNumbers(const json&, std::string_view, std::vector<int32_t>*);
template absl::Status AppendNumbers(const json&, std::string_view, std::vector<int64_t>*);
template absl::Status AppendNumbers(const json&, std::string_view, std::vector<uint64_t>*);
template absl::Status AppendNumbers(const json&, std::string_view, std::vector<float>*);
template absl::Status AppendNumbers(const json&, std::string_view, std::vector<double>*);
template absl::StatusOr<int32_t> ReadNumber(const json&, std::string_view);
template absl::StatusOr<uint32_t> ReadNumber(const json&, std::string_view);
template absl::StatusOr<int64_t> ReadNumber(const json&, std::string_view);
template absl::StatusOr<uint64_t> ReadNumber(const json&, std::string_view);
template absl::StatusOr<float> ReadNumber(const json&, std::string_view);
template absl::StatusOr<double> ReadNumber(const json&, std::string_view);

}  // namespace longview::server
