// ModelStreamInfer: ids, errors, half-closed streams, cancelling, the end of the server.
#include <map>

#include "inference/grpc_service.grpc.pb.h"
#include "tests/server/grpc/fixture.h"

namespace longview::testing {
namespace {

using inference::GRPCInferenceService;
using inference::ModelInferRequest;
using inference::ModelStreamInferResponse;

class StreamInferTest : public GrpcFixture {
 protected:
  StreamInferTest() : stub(GRPCInferenceService::NewStub(channel)) {
    SetTimeout(context, absl::Seconds(30));
    stream = stub->ModelStreamInfer(&context);
  }

  static ModelInferRequest Request(const std::string& id, const std::string& text) {
    auto request = Parse<ModelInferRequest>(
        R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [1] }
           outputs { name: "logits" })");
    request.set_id(id);
    request.mutable_inputs(0)->mutable_contents()->add_bytes_contents(text);
    return request;
  }

  // All answers until the stream ends, by id.
  std::map<std::string, ModelStreamInferResponse> ReadAll() {
    std::map<std::string, ModelStreamInferResponse> answers;
    ModelStreamInferResponse answer;
    while (stream->Read(&answer)) {
      EXPECT_FALSE(answers.contains(answer.infer_response().id()));
      answers[answer.infer_response().id()] = answer;
    }
    return answers;
  }

  std::unique_ptr<GRPCInferenceService::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<ModelInferRequest, ModelStreamInferResponse>> stream;
};

TEST_F(StreamInferTest, ManyInFlightEachAnsweredOnce) {
  constexpr int kRequests = 1000;  // More than the stream holds open at a time.
  std::thread writer([&] {
    for (int i = 0; i < kRequests; ++i) {
      ASSERT_TRUE(stream->Write(Request(absl::StrCat(i), absl::StrCat("text ", i))));
    }
    stream->WritesDone();
  });
  const auto answers = ReadAll();
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(answers.size(), static_cast<size_t>(kRequests));
  for (const auto& [id, answer] : answers) {
    EXPECT_EQ(answer.error_message(), "");
    const auto& values = answer.infer_response().outputs(0).contents().fp32_contents();
    EXPECT_EQ((std::vector<float>(values.begin(), values.end())),
              FakeLogits(absl::StrCat("text ", id), 3));
    EXPECT_TRUE(answer.infer_response().parameters().at("triton_final_response").bool_param());
  }
}

TEST_F(StreamInferTest, ErrorsCarryTheIdAndTheStreamStaysOpen) {
  ModelStreamInferResponse answer;
  auto unknown = Request("bad", "abc");
  unknown.set_model_name("other");
  ASSERT_TRUE(stream->Write(unknown));
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_NE(answer.error_message().find("other"), std::string::npos);
  EXPECT_EQ(answer.infer_response().id(), "bad");
  ASSERT_TRUE(stream->Write(Request("fails", "!prepare")));
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_NE(answer.error_message(), "");
  EXPECT_EQ(answer.infer_response().id(), "fails");
  auto good = Request("good", "abc");
  (*good.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  ASSERT_TRUE(stream->Write(good));
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.error_message(), "");
  EXPECT_EQ(answer.infer_response().id(), "good");
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(StreamInferTest, AHalfClosedStreamStillGetsItsAnswers) {
  backend.control->advance.Close();
  ASSERT_TRUE(stream->Write(Request("a", "abc")));
  ASSERT_TRUE(stream->Write(Request("b", "abd")));
  stream->WritesDone();
  EXPECT_TRUE(backend.control->advance.AwaitWaiting(1, absl::Seconds(10)));
  backend.control->advance.Open();
  EXPECT_EQ(ReadAll().size(), 2u);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(StreamInferTest, AnEmptyStreamEnds) {
  stream->WritesDone();
  EXPECT_TRUE(ReadAll().empty());
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(StreamInferTest, CancelReachesEveryRequest) {
  backend.control->advance.Close();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stream->Write(Request(absl::StrCat(i), "abc")));
  // The fifth must have been read before the client leaves.
  EXPECT_TRUE(Eventually([&] { return backend.prepared() == 5; }));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return backend.cancelled() == 5; }));
  backend.control->advance.Open();
  EXPECT_TRUE(Eventually([&] { return backend.control->live_items == 0; }));
}

TEST_F(StreamInferTest, AnIdleStreamEndsWithTheServer) {
  ModelStreamInferResponse answer;
  ASSERT_TRUE(stream->Write(Request("a", "abc")));
  ASSERT_TRUE(stream->Read(&answer));
  const absl::Time deadline = server::SteadyNow() + absl::Seconds(20);
  server->Stop(deadline);
  EXPECT_LT(server::SteadyNow(), deadline) << "an idle stream held up the server";
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(StreamInferTest, WhatIsLateEndsWithTheServer) {
  backend.control->advance.Close();
  ASSERT_TRUE(stream->Write(Request("a", "abc")));
  EXPECT_TRUE(backend.control->advance.AwaitWaiting(1, absl::Seconds(10)));
  std::thread stopper([&] { server->Stop(server::SteadyNow() + absl::Milliseconds(20)); });
  ModelStreamInferResponse answer;
  EXPECT_FALSE(stream->Read(&answer));
  ExpectStopped(stream->Finish(), context);
  EXPECT_TRUE(Eventually([&] { return backend.cancelled() == 1; }));
  backend.control->advance.Open();
  stopper.join();
}

TEST_F(StreamInferTest, AStoppingServerAnswersWhatIsInFlight) {
  backend.control->advance.Close();
  ASSERT_TRUE(stream->Write(Request("a", "abc")));
  EXPECT_TRUE(backend.control->advance.AwaitWaiting(1, absl::Seconds(10)));
  std::thread stopper([&] { server->Stop(server::SteadyNow() + absl::Seconds(20)); });
  EXPECT_TRUE(Stops());
  backend.control->advance.Open();
  EXPECT_EQ(ReadAll().count("a"), 1u);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  stopper.join();
}

}  // namespace
}  // namespace longview::testing
