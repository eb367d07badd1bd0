// The body of a typed call in any of its forms: JSON, multipart, or the bare document with the
// other fields in the query.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"
#include "server/api/calls/list_answer.h"
#include "server/http/message.h"

namespace longview::server {

class TypedBody {
 public:
  // `messages`: what the route's bodies may become. text/plain and image/* are the document itself,
  // and so is application/octet-stream: a text if one of the messages has one, else an image.
  //
  // INVALID_ARGUMENT for what does not parse, and for JSON that calls itself text/plain, as
  // browsers send it where a page names no type: a JSON object with a member of one of the
  // messages. kUnsupportedMediaType for text that is not UTF-8 by its own declaration and for
  // multipart other than form-data. A body of any other type is read as JSON, whose values take at
  // most `max_bytes`. Takes the request's body.
  static absl::StatusOr<TypedBody> Parse(
      HttpRequest& request, size_t max_bytes,
      std::span<const google::protobuf::Descriptor* const> messages);

  // Whether the caller gave the field.
  bool Has(std::string_view field) const;

  // Takes the texts out where `text` is a list; nothing where it is none. INVALID_ARGUMENT for a
  // list that is empty or longer than `most`; an element that is no string is its own error.
  absl::StatusOr<std::optional<TextList>> TakeTexts(size_t most);
  // Takes a member of JSON that is true or false; false where it is absent.
  absl::StatusOr<bool> TakeFlag(const char* field);

  // Moves the fields into the message, once; an unknown field is INVALID_ARGUMENT.
  absl::Status MoveTo(google::protobuf::Message* message);

 private:
  nlohmann::json object_;  // Null unless the body is JSON.
  HttpFields fields_;      // All other forms.
};

}  // namespace longview::server
