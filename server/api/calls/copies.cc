#include "server/api/calls/copies.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/api/calls/context.h"
#include "server/engine/request_bytes.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

size_t StringBytes(const std::string& text) { return sizeof(text) + text.size(); }

size_t ListBytes(const std::vector<std::string>& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += StringBytes(text);
  return bytes;
}

// The memory of one value of a field, and at least that of its request's form.
size_t ValueBytes(const Message& message, const FieldDescriptor& field, int index) {
  constexpr size_t kNumber = 8;
  const Reflection& reflection = *message.GetReflection();
  std::string scratch;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return StringBytes(
          field.is_repeated()
              ? reflection.GetRepeatedStringReference(message, &field, index, &scratch)
              : reflection.GetStringReference(message, &field, &scratch));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return (field.is_repeated() ? reflection.GetRepeatedMessage(message, &field, index)
                                  : reflection.GetMessage(message, &field))
          .SpaceUsedLong();
    default:
      return kNumber;
  }
}

std::string Listed(const std::vector<CopiedMember>& members) {
  constexpr size_t kMostNamed = 4;
  return absl::StrJoin(members.begin(), members.begin() + std::min(members.size(), kMostNamed),
                       ", ", [](std::string* out, const CopiedMember& member) {
                         absl::StrAppend(out, member.name, " ", member.bytes);
                       });
}

}  // namespace

std::vector<CopiedMember> MembersOf(const Message& message, const CopyTerms&) {
  std::vector<const FieldDescriptor*> fields;
  const Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  std::vector<CopiedMember> members;
  for (const FieldDescriptor* field : fields) {
    CopiedMember& member = members.emplace_back();
    member.name = std::string(field->name());
    const int values = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < values; ++i) member.bytes += ValueBytes(message, *field, i);
  }
  return members;
}

std::vector<CopiedMember> MembersOf(const models::Request& request, const CopyTerms& terms) {
  std::vector<CopiedMember> members = {
      {std::string(terms.text), request.text.value_or("").size()},
      {"truncation_direction", request.truncation_direction.size()},
      {"global_tokens", ListBytes(request.global_tokens)},
      {"aggregation", request.aggregation.size()},
      {"pooling", request.pooling.size()},
      {"prompt", request.prompt.value_or("").size()},
      {"prompt_name", request.prompt_name.value_or("").size()},
  };
  if (request.generation) {
    members.push_back({"stop", ListBytes(request.generation->stop)});
    for (const auto& [name, value] : request.generation->others) {
      members.push_back({Excerpt(name), StringBytes(name) + StringBytes(value)});
    }
  }
  size_t rest = RequestBytes(request) - sizeof(request);
  for (const CopiedMember& member : members) rest -= std::min(rest, member.bytes);
  members.push_back({"other members", rest});
  return members;
}

absl::Status CheckCopies(std::vector<CopiedMember> members, size_t elements,
                         const CopyTerms& terms) {
  std::erase_if(members, [](const CopiedMember& member) { return member.bytes == 0; });
  size_t bytes = 0;
  for (const CopiedMember& member : members) bytes += member.bytes;
  if (elements <= 1 || bytes <= terms.limit / elements) return absl::OkStatus();
  std::stable_sort(members.begin(), members.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return BadField(members.front().name,
                  absl::StrCat(bytes, " bytes (", Listed(members), ") for each of ", elements, " ",
                               std::string(terms.elements), " are ", bytes * elements,
                               " in all, the limit is ", terms.limit));
}

}  // namespace longview::server
