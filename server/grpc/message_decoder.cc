#include "server/grpc/message_decoder.h"

#include <grpc/byte_buffer_reader.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/grpc/parse_cost.h"

namespace longview::server {

namespace {

constexpr int kGzipOrZlib = 32 + MAX_WBITS;
constexpr size_t kChunk = 64 * 1024;

// The library tells a message's compression to those who read its buffer, not in its C++ API.
class CompressionReader : public grpc::ProtoBufferReader {
 public:
  explicit CompressionReader(grpc::ByteBuffer* message) : grpc::ProtoBufferReader(message) {}

  bool compressed() {
    const grpc_byte_buffer* buffer = reader()->buffer_in;
    return buffer->type == GRPC_BB_RAW && buffer->data.raw.compression != GRPC_COMPRESS_NONE;
  }
};

class Inflater {
 public:
  Inflater() : ready_(inflateInit2(&stream_, kGzipOrZlib) == Z_OK) {}
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  absl::Status Run(grpc::ProtoBufferReader& in, size_t limit,
                   absl::FunctionRef<absl::Status(size_t bytes)> grow,
                   std::vector<grpc::Slice>& out) {
    if (!ready_) return absl::ResourceExhaustedError("no memory to decompress the message");
    const void* data = nullptr;
    int size = 0;
    size_t total = 0;
    int result = Z_OK;
    while (result != Z_STREAM_END && in.Next(&data, &size)) {
      stream_.next_in = static_cast<Bytef*>(const_cast<void*>(data));
      stream_.avail_in = static_cast<uInt>(size);
      do {
        RETURN_IF_ERROR(grow(total + kChunk));
        grpc::Slice chunk(kChunk);
        stream_.next_out = const_cast<Bytef*>(chunk.begin());
        stream_.avail_out = kChunk;
        result = inflate(&stream_, Z_NO_FLUSH);
        const size_t made = kChunk - stream_.avail_out;
        total += made;
        if (total > limit) return absl::OutOfRangeError(absl::StrCat(total));
        if (made > 0) out.push_back(chunk.sub(0, made));
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) return Damaged();
      } while (result != Z_STREAM_END && stream_.avail_out == 0);
    }
    if (result != Z_STREAM_END) return Damaged();
    return absl::OkStatus();
  }

 private:
  static absl::Status Damaged() {
    return absl::InternalError("the message does not decompress as its encoding says");
  }

  z_stream stream_{};
  const bool ready_;
};

}  // namespace

absl::Status MessageDecoder::Decode(grpc::ByteBuffer& bytes, uint64_t others,
                                    google::protobuf::Message& message,
                                    ByteBudget::Reservation& held) const {
  size_t wire = bytes.Length();
  if (IsCompressed(bytes)) {
    RETURN_IF_ERROR(held.Resize(others + wire));
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
  RETURN_IF_ERROR(held.Resize(others + wire + parsed));
  grpc::ProtoBufferReader reader(&bytes);
  const bool read = message.ParseFromZeroCopyStream(&reader);
  bytes.Clear();
  if (!read) {
    return absl::InternalError("the request does not parse as the method's message");
  }
  return held.Resize(others + parsed);
}

bool IsCompressed(grpc::ByteBuffer& message) {
  return message.Valid() && CompressionReader(&message).compressed();
}

absl::StatusOr<grpc::ByteBuffer> Inflate(grpc::ByteBuffer& message, size_t limit,
                                         absl::FunctionRef<absl::Status(size_t bytes)> grow) {
  std::vector<grpc::Slice> slices;
  grpc::ProtoBufferReader in(&message);
  RETURN_IF_ERROR(Inflater().Run(in, limit, grow, slices));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace longview::server
