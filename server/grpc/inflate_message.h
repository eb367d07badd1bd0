// Compressed gRPC messages: gRPC's own decompression has no limit, so the server switches it off
// and inflates here.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace longview::server {

// Whether the message came compressed (gzip or deflate), as its frame's flag says.
bool IsCompressed(grpc::ByteBuffer& message);

// The message a gzip or deflate stream holds. `grow(bytes)` is asked before memory is taken, with
// the bytes of the result so far, and its error ends the work. kOutOfRange if the result has more
// than `limit` bytes, INTERNAL if the stream is damaged or ends early, as gRPC says of these.
absl::StatusOr<grpc::ByteBuffer> Inflate(grpc::ByteBuffer& message, size_t limit,
                                         absl::FunctionRef<absl::Status(size_t bytes)> grow);

}  // namespace longview::server
