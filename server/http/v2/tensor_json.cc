#include "server/http/v2/tensor_json.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"

namespace longview::server {
namespace {

using nlohmann::json;

std::string InputField(const std::string& name) { return absl::StrCat("input ", Quoted(name)); }

bool IsNested(const json& data) {
  return data.is_array() && !data.empty() && IsArray(data.front());
}

template <typename T>
absl::Status AppendNested(const json& data, const std::string& field, std::vector<T>* out) {
  if (!IsNested(data)) return AppendNumbers(data, field, out);
  for (const json& row : data) {
    RETURN_IF_ERROR(AppendNested(row, field, out));
  }
  return absl::OkStatus();
}

// Elements read as Read and stored as Wire, a type of at most that width.
template <typename Wire, typename Read>
absl::StatusOr<RawTensor> ReadAs(const json& data, const std::string& datatype,
                                 const std::string& field) {
  if (std::is_same_v<Wire, int64_t> && data.is_binary() &&
      data.get_binary().subtype() == kInt64Array) {
    const json::binary_t& bytes = data.get_binary();
    return RawTensor{std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                     static_cast<int64_t>(bytes.size() / sizeof(int64_t))};
  }
  std::vector<Read> values;
  RETURN_IF_ERROR(AppendNested(data, field, &values));
  RawTensor raw;
  raw.elements = static_cast<int64_t>(values.size());
  if constexpr (std::is_same_v<Wire, Read>) {
    raw.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Wire));
  } else {
    raw.bytes.reserve(values.size() * sizeof(Wire));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::in_range<Wire>(values[i])) {
        return FieldError(field,
                          absl::StrCat("element ", i, " is ", values[i], ", outside ", datatype));
      }
      const Wire value = static_cast<Wire>(values[i]);
      raw.bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  return raw;
}

// Calls `each` on every leaf of nested arrays.
template <typename Each>
absl::Status ForEachLeaf(const json& data, const std::string& field, Each each) {
  if (data.is_binary()) return FieldError(field, "expected other elements, got numbers");
  if (!data.is_array()) {
    return FieldError(field, absl::StrCat("expected an array, got ", Describe(data)));
  }
  for (const json& element : data) {
    RETURN_IF_ERROR(element.is_array() ? ForEachLeaf(element, field, each) : each(element));
  }
  return absl::OkStatus();
}

absl::StatusOr<RawTensor> ReadBools(const json& data, const std::string& field) {
  RawTensor raw;
  RETURN_IF_ERROR(ForEachLeaf(data, field, [&](const json& element) -> absl::Status {
    const absl::StatusOr<bool> value = ReadBool(element, field);
    if (value.ok()) raw.bytes.push_back(*value ? 1 : 0);
    return value.status();
  }));
  raw.elements = static_cast<int64_t>(raw.bytes.size());
  return raw;
}

absl::StatusOr<RawTensor> ReadStrings(const json& data, const std::string& name) {
  const std::string field = InputField(name);
  const bool base64 = name == "image";
  RawTensor raw;
  RETURN_IF_ERROR(ForEachLeaf(data, field, [&](const json& element) -> absl::Status {
    absl::StatusOr<std::string> value = ReadString(element, field);
    if (!value.ok()) return value.status();
    std::string decoded;
    if (base64 && !absl::Base64Unescape(*value, &decoded)) {
      return FieldError(field,
                        absl::StrCat("element ", raw.elements, " is not base64: ", Quoted(*value)));
    }
    const std::string& bytes = base64 ? decoded : *value;
    const auto length = static_cast<uint32_t>(bytes.size());
    raw.bytes.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(bytes);
    ++raw.elements;
    return absl::OkStatus();
  }));
  return raw;
}

// Elements that are written between two looks at how long the text has become.
constexpr size_t kElementsAtATime = 1024;

template <typename Wire, typename Print>
absl::Status AppendElements(std::string_view raw, size_t max_bytes, std::string* out) {
  if (raw.size() % sizeof(Wire) != 0) return absl::InternalError("tensor of a partial element");
  out->push_back('[');
  for (size_t at = 0; at < raw.size();) {
    const size_t until = std::min(raw.size(), at + kElementsAtATime * sizeof(Wire));
    for (; at < until; at += sizeof(Wire)) {
      if (at > 0) out->push_back(',');
      Wire value;
      std::memcpy(&value, raw.data() + at, sizeof(Wire));
      AppendJson(static_cast<Print>(value), out);
    }
    if (out->size() > max_bytes) return AnswerTooLarge(out->size(), max_bytes);
  }
  out->push_back(']');
  return absl::OkStatus();
}

absl::Status AppendStrings(std::string_view raw, size_t max_bytes, std::string* out) {
  out->push_back('[');
  for (bool first = true; !raw.empty(); first = false) {
    uint32_t length = 0;
    if (raw.size() < sizeof(length)) return absl::InternalError("BYTES without a whole length");
    std::memcpy(&length, raw.data(), sizeof(length));
    raw.remove_prefix(sizeof(length));
    if (raw.size() < length) return absl::InternalError("BYTES shorter than their length");
    if (!first) out->push_back(',');
    AppendJsonString(raw.substr(0, length), out);
    if (out->size() > max_bytes) return AnswerTooLarge(out->size(), max_bytes);
    raw.remove_prefix(length);
  }
  out->push_back(']');
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RawTensor> TensorFromJson(const json& data, const std::string& datatype,
                                         const std::string& name) {
  const std::string field = InputField(name);
  if (datatype == "INT64") return ReadAs<int64_t, int64_t>(data, datatype, field);
  if (datatype == "INT32") return ReadAs<int32_t, int32_t>(data, datatype, field);
  if (datatype == "FP32") return ReadAs<float, float>(data, datatype, field);
  if (datatype == "BYTES") return ReadStrings(data, name);
  if (datatype == "BOOL") return ReadBools(data, field);
  if (datatype == "FP64") return ReadAs<double, double>(data, datatype, field);
  if (datatype == "UINT64") return ReadAs<uint64_t, uint64_t>(data, datatype, field);
  if (datatype == "INT8") return ReadAs<int8_t, int64_t>(data, datatype, field);
  if (datatype == "INT16") return ReadAs<int16_t, int64_t>(data, datatype, field);
  if (datatype == "UINT8") return ReadAs<uint8_t, int64_t>(data, datatype, field);
  if (datatype == "UINT16") return ReadAs<uint16_t, int64_t>(data, datatype, field);
  if (datatype == "UINT32") return ReadAs<uint32_t, int64_t>(data, datatype, field);
  if (datatype == "FP16" || datatype == "BF16") {
    return FieldError(field, absl::StrCat("datatype ", datatype, " exists in binary form only"));
  }
  return FieldError(field, absl::StrCat("unknown datatype ", Quoted(datatype)));
}

absl::Status AppendTensor(std::string_view raw, std::string_view datatype, size_t max_bytes,
                          std::string* out) {
  if (datatype == "FP32") return AppendElements<float, float>(raw, max_bytes, out);
  if (datatype == "INT64") return AppendElements<int64_t, int64_t>(raw, max_bytes, out);
  if (datatype == "INT32") return AppendElements<int32_t, int64_t>(raw, max_bytes, out);
  if (datatype == "BOOL") return AppendElements<char, bool>(raw, max_bytes, out);
  if (datatype == "BYTES") return AppendStrings(raw, max_bytes, out);
  return absl::InternalError("output of a datatype without a JSON form: " + std::string(datatype));
}

}  // namespace longview::server
