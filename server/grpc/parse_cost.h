// Memory of a protobuf message once parsed, counted on the wire before that: two bytes can become
// an empty submessage of more than a hundred.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>

namespace longview::server {

// An upper estimate in bytes of the parsed form of one `type` message, all of `wire` until its end.
// Stops counting beyond `most`. Bytes that do not parse count as far as they could be read: the
// parser will say so.
uint64_t EstimateParsedBytes(const google::protobuf::Descriptor& type,
                             google::protobuf::io::ZeroCopyInputStream& wire, uint64_t most);

}  // namespace longview::server
