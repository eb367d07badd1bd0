// Limits of one client: keys come first, messages and answers against the clock, bytes in
// memory, connections.
#include <future>

#include "inference/grpc_service.grpc.pb.h"
#include "longview/v1/text.grpc.pb.h"
#include "server/limits/byte_budget.h"
#include "tests/server/grpc/fixture.h"
#include "tests/server/grpc/raw_http2.h"
#include "tests/server/limits/heard_ends.h"

namespace longview::testing {
namespace {

namespace v1 = longview::v1;

constexpr char kClassify[] = "/longview.v1.TextService/Classify";
constexpr char kStream[] = "/inference.GRPCInferenceService/ModelStreamInfer";
constexpr uint32_t kWindow = 65535;
constexpr uint64_t kBudget = 4u << 20;

class Limits : protected WithHeardEnds, public GrpcFixture {
 protected:
  Limits()
      : GrpcFixture(server::ApiOptions(), Options(ends),
                    {.total = kBudget, .per_client = kBudget}) {}

  grpc::Status Classify(const std::string& document) {
    grpc::ClientContext context;
    v1::ClassifyRequest request;
    request.set_model("one");
    request.set_text(document);
    request.set_truncate(true);
    v1::ClassifyResponse response;
    return v1::TextService::NewStub(channel)->Classify(&context, request, &response);
  }

  static std::string Request() {
    v1::ClassifyRequest request;
    request.set_model("one");
    request.set_text("abc");
    const std::string body = request.SerializeAsString();
    return RawHttp2::Prefix(static_cast<uint32_t>(body.size())) + body;
  }

 private:
  static server::GrpcServerOptions Options(HeardEnds& ends) {
    server::GrpcServerOptions options;
    options.ends = ends.Listener();
    options.max_message_bytes = 2 << 20;
    options.connections = {.total = 6, .per_address = 4};
    options.transfer_grace = absl::Milliseconds(300);
    return options;
  }
};

TEST_F(Limits, MetadataMayHaveSixteenKibibytes) {
  for (const auto& [bytes, fits] : {std::pair{15'000, true}, std::pair{17'000, false}}) {
    grpc::ClientContext context;
    context.AddMetadata("x-token", std::string(static_cast<size_t>(bytes), 'a'));
    v1::ClassifyRequest request;
    request.set_model("one");
    request.set_text("abc");
    v1::ClassifyResponse response;
    const grpc::Status status =
        v1::TextService::NewStub(channel)->Classify(&context, request, &response);
    EXPECT_EQ(status.ok(), fits) << bytes << ": " << status.error_message();
  }
}

TEST_F(Limits, TheKeyComesBeforeTheMessage) {
  const server::ApiKeys keys(*server::KeySet::Parse("search:secret"));
  server::GrpcServer guarded(backend.api, &keys);
  server::GrpcServerOptions options;
  options.port = 0;
  options.bytes = &backend.bytes;
  const absl::StatusOr<int> bound = guarded.Start(options);
  ASSERT_TRUE(bound.ok()) << bound.status();
  RawHttp2 client(*bound, kWindow);
  client.Call(1, kClassify);
  EXPECT_TRUE(client.Ended(1)) << "the server waits for the message of somebody without a key";
}

TEST_F(Limits, ARefusedCallThatIsCancelledEndsOnce) {
  const server::ApiKeys keys(*server::KeySet::Parse("search:secret"));
  server::GrpcServer guarded(backend.api, &keys);
  server::GrpcServerOptions options;
  options.port = 0;
  options.bytes = &backend.bytes;
  const absl::StatusOr<int> bound = guarded.Start(options);
  ASSERT_TRUE(bound.ok()) << bound.status();
  // gRPC aborts the process where a call is finished twice. Whether it sees the cancellation before
  // or after the refusal is a race, so there are many calls.
  for (int connection = 0; connection < 20; ++connection) {
    RawHttp2 client(*bound, kWindow);
    for (uint32_t stream = 1; stream < 80; stream += 4) {
      client.CallAndReset(stream, "/grpc.health.v1.Health/Watch");
      client.CallAndReset(stream + 2, kStream);
    }
  }
  RawHttp2 client(*bound, kWindow);
  client.Call(1, kStream);
  EXPECT_TRUE(client.Ended(1));
}

TEST_F(Limits, RepeatedEntriesOfForwardedForAreOneList) {
  server::GrpcServer behind(backend.api, nullptr, *server::TrustedProxies::Parse("127.0.0.0/8"));
  server::GrpcServerOptions options;
  options.port = 0;
  options.bytes = &backend.bytes;
  const absl::StatusOr<int> bound = behind.Start(options);
  ASSERT_TRUE(bound.ok()) << bound.status();
  const auto proxy =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", *bound), grpc::InsecureChannelCredentials());
  const auto all = backend.bytes.TryReserve("1.2.3.4", kBudget - 1);
  ASSERT_TRUE(all.ok());
  grpc::ClientContext context;
  for (const char* hop : {"6.6.6.6", "1.2.3.4", "127.0.0.7"}) {
    context.AddMetadata("x-forwarded-for", hop);
  }
  v1::ClassifyRequest request;
  request.set_model("one");
  request.set_text("abc");
  v1::ClassifyResponse response;
  const grpc::Status status =
      v1::TextService::NewStub(proxy)->Classify(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << "the client is not 1.2.3.4: " << status.error_message();
}

TEST_F(Limits, AHalfSentMessageIsNotWaitedFor) {
  RawHttp2 client(port, kWindow);
  client.Call(1, kClassify);
  ASSERT_TRUE(client.Data(1, RawHttp2::Prefix(1000) + "abc"));
  EXPECT_TRUE(client.Ended(1));
  EXPECT_TRUE(Eventually([&] { return backend.bytes.held() == 0; }));
}

TEST_F(Limits, HalfSentBytesOfAnAddressHaveALimit) {
  RawHttp2 client(port, kWindow);
  client.Call(1, kStream);
  const std::string piece(64 << 20, 'x');
  bool taken = client.Data(1, RawHttp2::Prefix(1 << 30));
  for (int i = 0; taken && i < 15; ++i) taken = client.Data(1, piece);
  EXPECT_FALSE(taken) << "the server keeps most of a GiB of a message whose limit is 2 MiB";
  EXPECT_TRUE(Eventually([&] { return ends.Count(server::EndCause::kBytes) == 1; }));
  EXPECT_TRUE(Classify("abc").ok());
}

TEST_F(Limits, AConnectionThatResetsItsCallsIsClosed) {
  for (const char* method : {kClassify, "/longview.v1.TextService/NoSuchMethod"}) {
    RawHttp2 client(port, kWindow);
    // Without a limit all of them are taken.
    const uint32_t most = 200'000;
    uint32_t stream = 1;
    while (!client.over() && stream < 2 * most) {
      for (int i = 0; i < 1000; ++i, stream += 2) {
        client.Call(stream, method);
        client.Reset(stream);
      }
      client.Ended(0, absl::Microseconds(1));
    }
    EXPECT_LT(stream, 2 * most) << method;
    EXPECT_TRUE(Eventually([&] {
      return ends.Count(server::EndCause::kResets) + ends.Count(server::EndCause::kCalls) +
                 ends.Count(server::EndCause::kFlood) >
             0;
    })) << method;
    EXPECT_TRUE(Eventually([&] { return Classify("abc").ok(); })) << method;
  }
}

TEST_F(Limits, AnAnswerNobodyTakesIsGivenUp) {
  RawHttp2 client(port, 0);
  client.Call(1, kClassify);
  ASSERT_TRUE(client.Data(1, Request()));
  EXPECT_TRUE(Eventually([&] { return backend.bytes.held() > 0; }));
  EXPECT_TRUE(Eventually([&] { return backend.bytes.held() == 0; })) << backend.bytes.held();
}

TEST_F(Limits, IdleConnectionsMakeRoom) {
  std::vector<std::unique_ptr<RawHttp2>> idle;
  for (int i = 0; i < 40; ++i) idle.push_back(std::make_unique<RawHttp2>(port, kWindow));
  // A connection that comes too soon after a victim is refused, this one as well.
  EXPECT_TRUE(Eventually([&] { return Classify("abc").ok(); }));
  EXPECT_TRUE(Eventually([&] {
    return ends.Count(server::EndCause::kRoom) + ends.Count(server::EndCause::kLimit) >= 37;
  }));
}

TEST_F(Limits, AMessageTooLargeForItsClientSaysNeedAndLimit) {
  const grpc::Status status = Classify(std::string((2 << 20) - 100, 'a'));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_NE(status.error_message().find(absl::StrCat(kBudget)), std::string::npos);
  EXPECT_TRUE(Classify(std::string(1 << 20, 'a')).ok());
  EXPECT_TRUE(Eventually([&] { return backend.bytes.held() == 0; }));
}

TEST_F(Limits, WhatABombParsesToIsCountedBefore) {
  inference::ModelInferRequest request;
  request.set_model_name("one");
  for (int i = 0; i < 50'000; ++i) request.add_inputs();
  ASSERT_LT(request.ByteSizeLong(), 110'000u);
  grpc::ClientContext context;
  inference::ModelInferResponse response;
  const grpc::Status status =
      inference::GRPCInferenceService::NewStub(channel)->ModelInfer(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_NE(status.error_message().find("in memory"), std::string::npos);
}

TEST_F(Limits, AStreamGoesOnBehindARequestThatDoesNotFit) {
  const auto request = [](const std::string& id, int inputs) {
    auto made = Parse<inference::ModelInferRequest>(
        R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [1]
           contents { bytes_contents: "abc" } } outputs { name: "logits" })");
    made.set_id(id);
    for (int i = 0; i < inputs; ++i) made.add_inputs();
    return made;
  };
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(20));
  const auto stub = inference::GRPCInferenceService::NewStub(channel);
  const auto stream = stub->ModelStreamInfer(&context);
  inference::ModelStreamInferResponse answer;
  for (const int inputs : {0, 50'000, 0}) {
    const std::string id = absl::StrCat("of ", inputs);
    ASSERT_TRUE(stream->Write(request(id, inputs)));
    ASSERT_TRUE(stream->Read(&answer)) << inputs;
    EXPECT_EQ(answer.infer_response().id(), id);
    EXPECT_EQ(answer.infer_response().model_name(), "one");
    EXPECT_EQ(answer.error_message().find("in memory") != std::string::npos, inputs > 0)
        << answer.error_message();
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(Eventually([&] { return backend.bytes.held() == 0; }));
}

TEST_F(Limits, ManyCallsOfOneClientAreRefusedWithAHint) {
  const auto all = backend.bytes.TryReserve("127.0.0.1", kBudget - 1);
  ASSERT_TRUE(all.ok());
  const grpc::Status status = Classify("abc");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_details().find("RetryInfo"), std::string::npos);
}

// A client's library repeats a call only if nothing came before the trailers of its refusal.
TEST_F(Limits, AClientsLibraryRepeatsARefusedCall) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  arguments.SetServiceConfigJSON(R"({"methodConfig": [{"name": [{}], "retryPolicy": {
      "maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1,
      "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]})");
  channel = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                      grpc::InsecureChannelCredentials(), arguments);
  auto all = backend.bytes.TryReserve("127.0.0.1", kBudget - 1);
  ASSERT_TRUE(all.ok());
  std::future<grpc::Status> call =
      std::async(std::launch::async, [this] { return Classify("abc"); });
  EXPECT_TRUE(Eventually([this] {
    return backend.Counted("longview_request_duration_seconds_count", "RESOURCE_EXHAUSTED") == 1;
  }));
  all->Reset();
  EXPECT_TRUE(call.get().ok());
}

// A refusal without initial metadata has its request id in the trailers.
TEST_F(Limits, ARefusedCallTellsItsRequestId) {
  const auto all = backend.bytes.TryReserve("127.0.0.1", kBudget - 1);
  ASSERT_TRUE(all.ok());
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "mine-2");
  v1::ClassifyResponse response;
  EXPECT_FALSE(v1::TextService::NewStub(channel)->Classify(&context, {}, &response).ok());
  EXPECT_TRUE(context.GetServerInitialMetadata().empty());
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto id = trailers.find("x-request-id");
  ASSERT_NE(id, trailers.end());
  EXPECT_EQ(std::string(id->second.data(), id->second.size()), "mine-2");
}

}  // namespace
}  // namespace longview::testing
