// The estimate of a parsed message is never below what protobuf takes, and close for plain ones.
#include "server/grpc/parse_cost.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "inference/grpc_service.pb.h"
#include "longview/v1/text.pb.h"

namespace longview::server {
namespace {

uint64_t Estimate(const google::protobuf::Message& message, uint64_t most = UINT64_MAX / 4) {
  const std::string wire = message.SerializeAsString();
  google::protobuf::io::ArrayInputStream in(wire.data(), static_cast<int>(wire.size()), 1000);
  return EstimateParsedBytes(*message.GetDescriptor(), in, most);
}

// Memory of the parsed message: on the heap, and on an arena.
template <typename Message>
uint64_t Taken(const Message& message) {
  const std::string wire = message.SerializeAsString();
  Message heap;
  heap.ParseFromString(wire);
  google::protobuf::Arena arena;
  google::protobuf::Arena::CreateMessage<Message>(&arena)->ParseFromString(wire);
  return std::max<uint64_t>(heap.SpaceUsedLong(), arena.SpaceUsed() * 9 / 10);
}

TEST(ParseCost, EmptySubmessages) {
  inference::ModelInferRequest request;
  for (int i = 0; i < 10'000; ++i) request.add_inputs();
  EXPECT_GE(Estimate(request), Taken(request));
}

TEST(ParseCost, Parameters) {
  inference::ModelInferRequest request;
  for (int i = 0; i < 10'000; ++i) {
    (*request.mutable_parameters())[std::to_string(i)].set_bool_param(true);
  }
  EXPECT_GE(Estimate(request), Taken(request));
}

TEST(ParseCost, ShortStrings) {
  longview::v1::GenerateRequest request;
  for (int i = 0; i < 10'000; ++i) request.add_stop("");
  EXPECT_GE(Estimate(request), Taken(request));
}

TEST(ParseCost, SmallNumbersInWideFields) {
  inference::ModelInferRequest request;
  auto& contents = *request.add_inputs()->mutable_contents();
  for (int i = 0; i < 100'000; ++i) contents.add_int64_contents(i % 100);
  EXPECT_GE(Estimate(request), Taken(request));
}

TEST(ParseCost, NumbersCountWhereverTheyAreCut) {
  longview::v1::ClassifyRequest one;
  one.add_token_ids(1);
  const uint64_t first = Estimate(one);
  for (const int more : {1, 7, 8, 9, 255, 2040, 2041, 5000}) {
    longview::v1::ClassifyRequest request = one;
    for (int i = 0; i < more; ++i) request.add_token_ids(i * 37);
    EXPECT_EQ(Estimate(request) - first, static_cast<uint64_t>(12 * more)) << more;
  }
}

TEST(ParseCost, TextCostsItself) {
  longview::v1::ClassifyRequest request;
  request.set_text(std::string(1 << 20, 'a'));
  EXPECT_GE(Estimate(request), uint64_t{1} << 20);
  EXPECT_LE(Estimate(request), (uint64_t{1} << 20) + 2000);
}

TEST(ParseCost, StopsBeyondTheMost) {
  inference::ModelInferRequest request;
  for (int i = 0; i < 10'000; ++i) request.add_inputs();
  EXPECT_LE(Estimate(request, 100'000), 102'000u);
}

TEST(ParseCost, BrokenMessagesEnd) {
  for (const std::string& wire : {std::string("\x2a\xff\xff\xff\xff\x0f"), std::string("\x2a\x7f"),
                                  std::string("\x0b\x0b\x0b"), std::string("\xff")}) {
    google::protobuf::io::ArrayInputStream in(wire.data(), static_cast<int>(wire.size()));
    EstimateParsedBytes(*inference::ModelInferRequest::descriptor(), in, UINT64_MAX / 4);
  }
}

}  // namespace
}  // namespace longview::server
