// JSON that was sent as text.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "google/protobuf/descriptor.h"

namespace longview::server {

// The first outermost member of `text` that one of `messages` has, where `text` as a whole is a
// JSON object; "" otherwise. Takes no memory but for one string of the text at a time.
std::string RequestMemberOf(std::string_view text,
                            std::span<const google::protobuf::Descriptor* const> messages);

}  // namespace longview::server
