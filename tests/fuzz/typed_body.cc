// JSON as a typed request, by the reflection codec: what it reads it writes back unchanged. The
// first byte picks the message.
#include <memory>
#include <string>

#include "google/protobuf/util/message_differencer.h"
#include "longview/v1/models.pb.h"
#include "longview/v1/text.pb.h"
#include "longview/v1/vision.pb.h"
#include "server/http/json/message.h"
#include "server/http/json/parse.h"
#include "tests/fuzz/fuzz.h"

namespace longview::server {
namespace {

using google::protobuf::Message;

const Message& Prototype(uint8_t kind) {
  switch (kind % 6) {
    case 0:
      return v1::ClassifyRequest::default_instance();
    case 1:
      return v1::EmbedRequest::default_instance();
    case 2:
      return v1::EstimateRequest::default_instance();
    case 3:
      return v1::GenerateRequest::default_instance();
    case 4:
      return v1::DetectObjectsRequest::default_instance();
    default:
      return v1::FillMaskResponse::default_instance();
  }
}

}  // namespace
}  // namespace longview::server

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview::server;
  const auto [kind, text] = longview::fuzz::SplitKind(longview::fuzz::AsText(data, size));
  const auto json = ParseJson(text);
  if (!json.ok()) return 0;
  const std::unique_ptr<Message> message(Prototype(kind).New());
  if (!ReadMessage(*json, message.get()).ok()) return 0;
  std::string written;
  AppendMessage(*message, &written);
  const auto again = ParseJson(written);
  FUZZ_PROMISE(again.ok());
  const std::unique_ptr<Message> copy(Prototype(kind).New());
  FUZZ_PROMISE(ReadMessage(*again, copy.get()).ok());
  FUZZ_PROMISE(google::protobuf::util::MessageDifferencer::Equals(*message, *copy));
  return 0;
}
