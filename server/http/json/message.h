// Protobuf messages as JSON: field names as in the .proto file, numbers as numbers (64-bit
// ones too), zero values written, bytes as base64. Protobuf's own converter writes 64-bit
// integers as strings, takes milliseconds for 4,096 ids, and its errors do not name a field.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace longview::server {

// INVALID_ARGUMENT names the member that is unknown, or of the wrong type or range. null
// leaves a member unset. Texts are moved, not copied: give the object away where it is long.
absl::Status ReadMessage(nlohmann::json object, google::protobuf::Message* message);

// Sets one field from text, as forms and queries have it: a repeated field gets one more
// element (numbers: also a comma list), a message field takes JSON, or "tile.size" its members.
absl::Status ReadTextField(std::string_view name, std::string value,
                           google::protobuf::Message* message);

// Appends an object. Fields with presence (messages, `optional`) are left out if unset.
// REQUIRES: maps have string keys.
void AppendMessage(const google::protobuf::Message& message, std::string* out);

// Appends an object like AppendMessage, without the fields numbered below `first`.
void AppendFields(const google::protobuf::Message& message, int first, std::string* out);

}  // namespace longview::server
