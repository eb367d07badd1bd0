#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/reflection.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/message.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/nearest_name.h"

namespace longview::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::json;

absl::StatusOr<const FieldDescriptor*> FindMember(const Descriptor& descriptor,
                                                  const std::string& name) {
  if (const FieldDescriptor* field = descriptor.FindFieldByName(name)) return field;
  std::vector<std::string_view> known;
  for (int i = 0; i < descriptor.field_count(); ++i) known.push_back(descriptor.field(i)->name());
  return FieldError(name, absl::StrCat("unknown member", DidYouMean("", name, known)));
}

// Takes the text out of `value`.
absl::StatusOr<std::string> ReadText(json& value, const FieldDescriptor& field) {
  absl::StatusOr<std::string> text = TakeString(value, field.name());
  if (!text.ok() || field.type() != FieldDescriptor::TYPE_BYTES) return text;
  std::string bytes;
  if (!absl::Base64Unescape(*text, &bytes)) {
    return FieldError(field.name(), absl::StrCat("not base64: ", Quoted(*text)));
  }
  return bytes;
}

absl::Status ReadMembers(json& object, Message* message);

absl::Status ReadRepeated(json& value, const FieldDescriptor& field, Message* message) {
  const Reflection& r = *message->GetReflection();
  const std::string& name = field.name();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    std::vector<int32_t> numbers;
    RETURN_IF_ERROR(AppendNumbers(value, name, &numbers));
    const auto to = r.GetMutableRepeatedFieldRef<int32_t>(message, &field);
    for (const int32_t number : numbers) to.Add(number);
    return absl::OkStatus();
  }
  if (!value.is_array()) {
    return FieldError(name, absl::StrCat("expected an array, got ", Describe(value)));
  }
  for (json& element : value) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!element.is_object()) {
        return FieldError(name, absl::StrCat("expected objects, got ", Describe(element)));
      }
      RETURN_IF_ERROR(ReadMembers(element, r.AddMessage(message, &field)));
      continue;
    }
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
      return FieldError(name, "cannot be given here");
    }
    ASSIGN_OR_RETURN(std::string text, ReadText(element, field));
    r.AddString(message, &field, std::move(text));
  }
  return absl::OkStatus();
}

// Reads a number and hands it to `set`.
template <typename T, typename Set>
absl::Status WithNumber(const json& value, const std::string& name, Set set) {
  absl::StatusOr<T> number = ReadNumber<T>(value, name);
  if (number.ok()) set(*number);
  return number.status();
}

absl::Status ReadField(json& value, const FieldDescriptor& field, Message* message) {
  const Reflection& r = *message->GetReflection();
  const std::string& name = field.name();
  if (field.is_repeated()) return ReadRepeated(value, field, message);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return WithNumber<int32_t>(value, name, [&](int32_t n) { r.SetInt32(message, &field, n); });
    case FieldDescriptor::CPPTYPE_UINT32:
      return WithNumber<uint32_t>(value, name,
                                  [&](uint32_t n) { r.SetUInt32(message, &field, n); });
    case FieldDescriptor::CPPTYPE_FLOAT:
      return WithNumber<float>(value, name, [&](float n) { r.SetFloat(message, &field, n); });
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return WithNumber<double>(value, name, [&](double n) { r.SetDouble(message, &field, n); });
    case FieldDescriptor::CPPTYPE_BOOL: {
      absl::StatusOr<bool> flag = ReadBool(value, name);
      if (flag.ok()) r.SetBool(message, &field, *flag);
      return flag.status();
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      absl::StatusOr<std::string> text = ReadText(value, field);
      if (text.ok()) r.SetString(message, &field, *std::move(text));
      return text.status();
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (!value.is_object()) {
        return FieldError(name, absl::StrCat("expected an object, got ", Describe(value)));
      }
      return ReadMembers(value, r.MutableMessage(message, &field));
    default:
      return FieldError(name, "cannot be given here");
  }
}

// The JSON value a form's text stands for.
json FromText(const FieldDescriptor& field, std::string text) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) return json(std::move(text));
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    if (text == "1") return true;
    if (text == "0") return false;
  }
  absl::StatusOr<json> value = ParseJson(text);
  if (value.ok()) return *std::move(value);
  return text;  // The wrong type, which the caller's check reports.
}

absl::Status ReadMembers(json& object, Message* message) {
  RETURN_IF_ERROR(ExpectObject(object));
  for (auto&& [name, value] : object.items()) {
    ASSIGN_OR_RETURN(const auto field, FindMember(*message->GetDescriptor(), name));
    RETURN_IF_ERROR(ReadField(value, *field, message));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadMessage(json object, Message* message) { return ReadMembers(object, message); }

absl::Status ReadTextField(std::string_view name, std::string value, Message* message) {
  const size_t dot = name.find('.');
  ASSIGN_OR_RETURN(const auto found,
                   FindMember(*message->GetDescriptor(), std::string(name.substr(0, dot))));
  const FieldDescriptor& field = *found;
  if (dot != std::string_view::npos) {
    if (field.is_repeated() || field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return FieldError(name, "unknown field");
    }
    return ReadTextField(name.substr(dot + 1), std::move(value),
                         message->GetReflection()->MutableMessage(message, &field));
  }
  if (field.type() == FieldDescriptor::TYPE_BYTES) {
    message->GetReflection()->SetString(message, &field, std::move(value));
    return absl::OkStatus();
  }
  if (field.is_repeated() && field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
    const bool is_json = value.starts_with('[');
    absl::StatusOr<json> numbers =
        ParseJson(is_json ? value : std::string("[").append(value).append("]"));
    if (!numbers.ok()) {
      return FieldError(name, absl::StrCat("expected numbers, got ", Quoted(value)));
    }
    return ReadField(*numbers, field, message);
  }
  json converted = FromText(field, std::move(value));
  if (field.is_repeated()) converted = json::array({std::move(converted)});
  return ReadField(converted, field, message);
}

}  // namespace longview::server
