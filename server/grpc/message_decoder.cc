#include "server/grpc/message_decoder.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/strings/str_cat.h"
#include "server/grpc/inflate_message.h"
#include "server/grpc/parse_cost.h"

namespace longview::server {

absl::Status MessageDecoder::Decode(grpc::ByteBuffer& bytes, uint64_t others,
                                    google::protobuf::Message& message,
                                    ByteBudget::Reservation& held) const {
  size_t wire = bytes.Length();
  if (IsCompressed(bytes)) {
    if (absl::Status fits = held.Resize(others + wire); !fits.ok()) return fits;
    absl::StatusOr<grpc::ByteBuffer> inflated = Inflate(
        bytes, max_message_bytes_, [&](size_t size) { return held.Resize(others + wire + size); });
    if (absl::IsOutOfRange(inflated.status())) {
      return absl::OutOfRangeError(
          absl::StrCat("the message inflates to more than ", max_message_bytes_, " bytes"));
    }
    if (!inflated.ok()) return inflated.status();
    bytes.Swap(&*inflated);
    wire = bytes.Length();
  }
  grpc::ProtoBufferReader counted(&bytes);
  const uint64_t parsed =
      EstimateParsedBytes(*message.GetDescriptor(), counted, 4 * static_cast<uint64_t>(UINT32_MAX));
  if (absl::Status fits = held.Resize(others + wire + parsed); !fits.ok()) return fits;
  grpc::ProtoBufferReader reader(&bytes);
  const bool read = message.ParseFromZeroCopyStream(&reader);
  bytes.Clear();
  if (!read) {
    return absl::InternalError("the request does not parse as the method's message");
  }
  return held.Resize(others + parsed);
}

}  // namespace longview::server
