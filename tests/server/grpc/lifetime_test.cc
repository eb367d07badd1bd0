// The listener: ports, limits, stopping with work in flight.
#include "inference/grpc_service.grpc.pb.h"
#include "longview/v1/text.grpc.pb.h"
#include "tests/server/grpc/fixture.h"

namespace longview::testing {
namespace {

namespace v1 = longview::v1;

class Lifetime : public GrpcFixture {
 protected:
  Lifetime()
      : GrpcFixture(server::ApiOptions(), Limits()), text(v1::TextService::NewStub(channel)) {}

  static server::GrpcServerOptions Limits() {
    server::GrpcServerOptions options;
    options.max_message_bytes = 100'000;
    return options;
  }

  grpc::Status Classify(const std::string& document, grpc_compression_algorithm algorithm) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    v1::ClassifyRequest request;
    request.set_model("one");
    request.set_text(document);
    request.set_truncate(true);
    v1::ClassifyResponse response;
    return text->Classify(&context, request, &response);
  }

  std::unique_ptr<v1::TextService::Stub> text;
};

TEST_F(Lifetime, ATakenPortIsAnError) {
  server::GrpcServer second(backend.api);
  server::GrpcServerOptions options;
  options.bytes = &backend.bytes;
  options.port = port;
  const absl::StatusOr<int> bound = second.Start(options);
  ASSERT_FALSE(bound.ok());
  EXPECT_NE(std::string(bound.status().message()).find(absl::StrCat(port)), std::string::npos);
}

TEST_F(Lifetime, MessagesOverTheLimitAreRefused) {
  EXPECT_TRUE(Classify(std::string(99'000, 'a'), GRPC_COMPRESS_NONE).ok());
  const grpc::Status status = Classify(std::string(101'000, 'a'), GRPC_COMPRESS_NONE);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_details(), "");
}

TEST_F(Lifetime, TheLimitHoldsAfterDecompression) {
  EXPECT_TRUE(Classify(std::string(99'000, 'a'), GRPC_COMPRESS_GZIP).ok());
  EXPECT_EQ(Classify(std::string(5'000'000, 'a'), GRPC_COMPRESS_GZIP).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(Lifetime, WorkInFlightFinishesWithinTheDeadline) {
  backend.control->advance.Close();
  grpc::Status status;
  std::thread caller([&] { status = Classify("abc", GRPC_COMPRESS_NONE); });
  EXPECT_TRUE(backend.control->advance.AwaitWaiting(1, absl::Seconds(10)));
  std::thread stopper([&] { server->Stop(server::SteadyNow() + absl::Seconds(20)); });
  EXPECT_TRUE(Stops());
  backend.control->advance.Open();
  caller.join();
  stopper.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(Lifetime, WorkBeyondTheDeadlineEndsUnavailable) {
  backend.control->advance.Close();
  grpc::Status status;
  grpc::ClientContext context;
  std::thread caller([&] {
    v1::ClassifyRequest request;
    request.set_model("one");
    request.set_text("abc");
    v1::ClassifyResponse response;
    status = text->Classify(&context, request, &response);
  });
  EXPECT_TRUE(backend.control->advance.AwaitWaiting(1, absl::Seconds(10)));
  std::thread stopper([&] { server->Stop(server::SteadyNow() + absl::Milliseconds(20)); });
  caller.join();
  ExpectStopped(status, context);
  EXPECT_TRUE(Eventually([&] { return backend.cancelled() == 1; }));
  backend.control->advance.Open();
  stopper.join();
}

TEST_F(Lifetime, StoppingTwiceIsFine) {
  server->Stop(server::SteadyNow());
  server->Stop(server::SteadyNow());
  EXPECT_EQ(Classify("abc", GRPC_COMPRESS_NONE).error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace longview::testing
