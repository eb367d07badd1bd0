// Decodes the bytes of a request into its message, within the limits of message and client.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/limits/byte_budget.h"

namespace longview::server {

// Thread-safe. A call's reservation covers the bytes on the wire, inflated, and the parsed form,
// each as long as it is in memory.
class MessageDecoder {
 public:
  explicit MessageDecoder(size_t max_message_bytes) : max_message_bytes_(max_message_bytes) {}

  // Parses `bytes`, which are gone afterwards, into `message`. `held` grows by what this takes
  // beside `others`, which stay, and afterwards covers the parsed form alone.
  //
  // INTERNAL for what does not inflate or parse, kOutOfRange for more than max_message_bytes once
  // inflated, otherwise as ByteBudget.
  absl::Status Decode(grpc::ByteBuffer& bytes, uint64_t others, google::protobuf::Message& message,
                      ByteBudget::Reservation& held) const;

 private:
  const size_t max_message_bytes_;
};

// gRPC's own decompression has no limit, so the server switches it off and inflates here.
//
// Whether the message came compressed (gzip or deflate), as its frame's flag says.
bool IsCompressed(grpc::ByteBuffer& message);

// The message a gzip or deflate stream holds. `grow(bytes)` is asked before memory is taken, with
// the bytes of the result so far, and its error ends the work. kOutOfRange if the result has more
// than `limit` bytes, INTERNAL if the stream is damaged or ends early, as gRPC says of these.
absl::StatusOr<grpc::ByteBuffer> Inflate(grpc::ByteBuffer& message, size_t limit,
                                         absl::FunctionRef<absl::Status(size_t bytes)> grow);

}  // namespace longview::server
