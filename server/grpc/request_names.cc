#include "server/grpc/request_names.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstdint>
#include <string>
#include <utility>

namespace longview::server {

using google::protobuf::internal::WireFormatLite;
using inference::ModelInferRequest;

inference::ModelInferRequest NamesOf(grpc::ByteBuffer& bytes) {
  constexpr uint32_t kMostBytes = 1024;
  ModelInferRequest names;
  grpc::ProtoBufferReader reader(&bytes);
  google::protobuf::io::CodedInputStream in(&reader);
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool name = field == ModelInferRequest::kIdFieldNumber ||
                      field == ModelInferRequest::kModelNameFieldNumber;
    if (!name || WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    uint32_t size = 0;
    std::string text;
    if (!in.ReadVarint32(&size)) break;
    if (size > kMostBytes) {
      if (!in.Skip(static_cast<int>(size))) break;
      continue;
    }
    if (!in.ReadString(&text, static_cast<int>(size))) break;
    if (!WireFormatLite::VerifyUtf8String(text.data(), static_cast<int>(text.size()),
                                          WireFormatLite::PARSE, "name")) {
      continue;
    }
    if (field == ModelInferRequest::kIdFieldNumber) {
      names.set_id(std::move(text));
    } else {
      names.set_model_name(std::move(text));
    }
  }
  return names;
}

}  // namespace longview::server
