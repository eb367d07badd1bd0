#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/escaping.h"
#include "server/http/json/message.h"
#include "server/http/json/writer.h"

namespace longview::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AppendText(const FieldDescriptor& field, const std::string& value, std::string* out) {
  if (field.type() == FieldDescriptor::TYPE_BYTES) {
    out->push_back('"');
    out->append(absl::Base64Escape(value));
    out->push_back('"');
  } else {
    AppendJsonString(value, out);
  }
}

// One value: element `index` of a repeated field, or the field itself if index is -1.
void AppendValue(const Message& message, const FieldDescriptor& field, int index,
                 std::string* out) {
  const Reflection& r = *message.GetReflection();
  const FieldDescriptor* f = &field;
  const bool one = index < 0;
  std::string scratch;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return AppendJson(
          int64_t{one ? r.GetInt32(message, f) : r.GetRepeatedInt32(message, f, index)}, out);
    case FieldDescriptor::CPPTYPE_INT64:
      return AppendJson(
          int64_t{one ? r.GetInt64(message, f) : r.GetRepeatedInt64(message, f, index)}, out);
    case FieldDescriptor::CPPTYPE_UINT32:
      return AppendJson(
          uint64_t{one ? r.GetUInt32(message, f) : r.GetRepeatedUInt32(message, f, index)}, out);
    case FieldDescriptor::CPPTYPE_UINT64:
      return AppendJson(
          uint64_t{one ? r.GetUInt64(message, f) : r.GetRepeatedUInt64(message, f, index)}, out);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return AppendJson(one ? r.GetDouble(message, f) : r.GetRepeatedDouble(message, f, index),
                        out);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return AppendJson(one ? r.GetFloat(message, f) : r.GetRepeatedFloat(message, f, index), out);
    case FieldDescriptor::CPPTYPE_BOOL:
      return AppendJson(one ? r.GetBool(message, f) : r.GetRepeatedBool(message, f, index), out);
    case FieldDescriptor::CPPTYPE_ENUM:
      return AppendJsonString(
          (one ? r.GetEnum(message, f) : r.GetRepeatedEnum(message, f, index))->name(), out);
    case FieldDescriptor::CPPTYPE_STRING:
      return AppendText(field,
                        one ? r.GetStringReference(message, f, &scratch)
                            : r.GetRepeatedStringReference(message, f, index, &scratch),
                        out);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return AppendMessage(one ? r.GetMessage(message, f) : r.GetRepeatedMessage(message, f, index),
                           out);
  }
}

// An object in the order of its keys: protobuf's maps have none.
void AppendMap(const Message& message, const FieldDescriptor& field, std::string* out) {
  const Reflection& r = *message.GetReflection();
  const FieldDescriptor* key = field.message_type()->map_key();
  const FieldDescriptor* value = field.message_type()->map_value();
  std::vector<const Message*> entries;
  for (int i = 0; i < r.FieldSize(message, &field); ++i) {
    entries.push_back(&r.GetRepeatedMessage(message, &field, i));
  }
  const auto key_of = [&](const Message* entry) {
    return entry->GetReflection()->GetString(*entry, key);
  };
  std::sort(entries.begin(), entries.end(),
            [&](const Message* a, const Message* b) { return key_of(a) < key_of(b); });
  out->push_back('{');
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendJsonString(key_of(entries[i]), out);
    out->push_back(':');
    AppendValue(*entries[i], *value, -1, out);
  }
  out->push_back('}');
}

void AppendRepeated(const Message& message, const FieldDescriptor& field, std::string* out) {
  const Reflection& r = *message.GetReflection();
  out->push_back('[');
  for (int i = 0; i < r.FieldSize(message, &field); ++i) {
    if (i > 0) out->push_back(',');
    AppendValue(message, field, i, out);
  }
  out->push_back(']');
}

}  // namespace

void AppendMessage(const Message& message, std::string* out) { AppendFields(message, 0, out); }

void AppendFields(const Message& message, int first, std::string* out) {
  const auto& descriptor = *message.GetDescriptor();
  out->push_back('{');
  const size_t start = out->size();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.number() < first) continue;
    if (field.has_presence() && !message.GetReflection()->HasField(message, &field)) continue;
    if (out->size() > start) out->push_back(',');
    out->push_back('"');
    out->append(field.name());
    out->append("\":");
    if (field.is_map()) {
      AppendMap(message, field, out);
    } else if (field.is_repeated()) {
      AppendRepeated(message, field, out);
    } else {
      AppendValue(message, field, -1, out);
    }
  }
  out->push_back('}');
}

}  // namespace longview::server
