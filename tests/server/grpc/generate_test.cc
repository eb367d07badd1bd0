// Generation through a channel: streams of messages, documents, tensors by pieces.
#include <map>

#include "inference/grpc_service.grpc.pb.h"
#include "longview/v1/text.grpc.pb.h"
#include "tests/server/grpc/fixture.h"

namespace longview::testing {
namespace {

namespace v1 = longview::v1;

class GrpcGenerate : public GrpcFixture {
 protected:
  GrpcGenerate()
      : text(v1::TextService::NewStub(channel)),
        inference(inference::GRPCInferenceService::NewStub(channel)) {
    GeneratorOptions options;
    options.control = control;
    backend.store.AddGenerator("gen", options);
  }
  ~GrpcGenerate() override { control->advance.Open(); }

  static v1::GenerateRequest Request(const std::string& prompt, int tokens) {
    v1::GenerateRequest request;
    request.set_model("gen");
    request.set_text(prompt);
    request.set_max_tokens(tokens);
    return request;
  }

  std::shared_ptr<GeneratorControl> control = std::make_shared<GeneratorControl>();
  std::unique_ptr<v1::TextService::Stub> text;
  std::unique_ptr<inference::GRPCInferenceService::Stub> inference;
};

TEST_F(GrpcGenerate, AStreamOfMessages) {
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(20));
  auto request = Request("Once", 40);
  request.set_n(2);
  const auto reader = text->Generate(&context, request);
  std::map<int, std::string> texts;
  v1::GenerateResponse message;
  int number = 0;
  while (reader->Read(&message)) {
    EXPECT_EQ(message.number(), number++);
    texts[message.index()] += message.text();
  }
  const grpc::Status status = reader->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(texts[0], FakeContinuation("Once", 0, 40));
  EXPECT_EQ(texts[1], FakeContinuation("Once", 1, 40));
  EXPECT_EQ(message.usage().output_tokens(), 80);
}

TEST_F(GrpcGenerate, ASlowReaderGetsFewerLargerMessages) {
  constexpr int kTokens = 20000;
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  const auto reader = text->Generate(&context, Request("Once", kTokens));
  // The whole is generated while nobody reads: writing waits for the reader, generating does not
  // as long as what waits is below PieceFlow::kMostBytes.
  ASSERT_TRUE(Eventually([&] { return control->decoded == kTokens; }));
  v1::GenerateResponse message;
  int messages = 0;
  std::string all;
  while (reader->Read(&message)) {
    ++messages;
    all += message.text();
  }
  ASSERT_TRUE(reader->Finish().ok());
  EXPECT_EQ(all, FakeContinuation("Once", 0, kTokens));
  EXPECT_LT(messages, kTokens / 2);
}

TEST_F(GrpcGenerate, CancellingFreesTheGenerationAgainAndAgain) {
  for (int i = 0; i < 100; ++i) {
    grpc::ClientContext context;
    const auto reader = text->Generate(&context, Request("Once", 90000));
    v1::GenerateResponse message;
    if (i % 2 == 0) {
      ASSERT_TRUE(reader->Read(&message));
    }
    context.TryCancel();
    while (reader->Read(&message)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Eventually([&] { return control->live_generations == 0; }));
  EXPECT_LT(control->decoded, 100 * 90000 / 10);
}

TEST_F(GrpcGenerate, ReadersThatVanishTakeTheirGenerationsAlong) {
  {
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>>> readers;
    for (int i = 0; i < 200; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      readers.push_back(text->Generate(contexts.back().get(), Request("Once", 1000)));
    }
    // One that comes after all who do not read is answered.
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(30));
    const auto reader = text->Generate(&context, Request("Last", 3));
    v1::GenerateResponse message;
    while (reader->Read(&message)) {
    }
    EXPECT_TRUE(reader->Finish().ok());
    for (size_t i = 0; i < readers.size(); ++i) {
      contexts[i]->TryCancel();
      while (readers[i]->Read(&message)) {
      }
      readers[i]->Finish();
    }
  }
  EXPECT_TRUE(Eventually([&] { return control->live_generations == 0; }));
}

TEST_F(GrpcGenerate, AStreamThatIsLateEndsWithTheServer) {
  control->advance.Close();
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  const auto reader = text->Generate(&context, Request("Once", 1000));
  EXPECT_TRUE(Eventually([&] { return backend.prepared() == 1; }));
  std::thread stopper([&] { server->Stop(server::SteadyNow() + absl::Milliseconds(20)); });
  v1::GenerateResponse message;
  EXPECT_FALSE(reader->Read(&message));
  ExpectStopped(reader->Finish(), context);
  EXPECT_TRUE(Eventually([&] { return backend.cancelled() == 1; }));
  control->advance.Open();
  stopper.join();
}

TEST_F(GrpcGenerate, AnUploadThatIsLateEndsWithTheServer) {
  control->advance.Close();
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::Document document;
  const auto upload = text->OpenDocument(&context, &document);
  v1::OpenDocumentRequest part;
  part.set_model("gen");
  part.set_text("Once");
  ASSERT_TRUE(upload->Write(part));
  ASSERT_TRUE(control->advance.AwaitWaiting(1, absl::Seconds(10)));
  std::thread stopper([&] { server->Stop(server::SteadyNow() + absl::Milliseconds(20)); });
  ExpectStopped(upload->Finish(), context);
  control->advance.Open();
  stopper.join();
}

TEST_F(GrpcGenerate, ErrorsEndTheStream) {
  const auto status = [&](const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    const auto reader = text->Generate(&context, request);
    v1::GenerateResponse message;
    while (reader->Read(&message)) {
    }
    return reader->Finish();
  };
  EXPECT_EQ(status(Request("!take", 2)).error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status(Request("!prepare", 2)).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const grpc::Status too_long = status(Request("Once", 1000000));
  EXPECT_EQ(too_long.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(too_long.error_message().find("100000"), std::string::npos);
}

TEST_F(GrpcGenerate, ADocumentStreamsInNoFasterThanItIsRead) {
  control->advance.Close();
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(30));
  v1::Document document;
  const auto writer = text->OpenDocument(&context, &document);
  v1::OpenDocumentRequest part;
  part.set_model("gen");
  part.set_text(std::string(1000, 'a'));
  ASSERT_TRUE(writer->Write(part));
  ASSERT_TRUE(control->advance.AwaitWaiting(1, absl::Seconds(10)));
  // The first part is being read; a second one waits in the transport.
  part.clear_model();
  ASSERT_TRUE(writer->Write(part));
  EXPECT_EQ(backend.prepared(), 1);
  control->advance.Open();
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(document.usage().input_tokens(), 2000);
  EXPECT_GT(document.state_bytes(), 0);

  v1::GenerateRequest request;
  request.set_document(document.handle());
  request.set_text("b");
  request.set_max_tokens(3);
  grpc::ClientContext asking;
  const auto reader = text->Generate(&asking, request);
  v1::GenerateResponse message;
  std::string answer;
  while (reader->Read(&message)) answer += message.text();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(answer, FakeContinuation(std::string(2000, 'a') + "b", 0, 3));

  v1::CloseDocumentRequest close;
  close.set_handle(document.handle());
  grpc::ClientContext closing, again;
  EXPECT_TRUE(text->CloseDocument(&closing, close, &document).ok());
  EXPECT_EQ(text->CloseDocument(&again, close, &document).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcGenerate, ADocumentOfAClientThatLeavesIsClosed) {
  {
    grpc::ClientContext context;
    v1::Document document;
    const auto writer = text->OpenDocument(&context, &document);
    v1::OpenDocumentRequest part;
    part.set_model("gen");
    part.set_text("abc");
    ASSERT_TRUE(writer->Write(part));
    ASSERT_TRUE(Eventually([&] { return backend.documents->size() == 1; }));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Eventually([&] { return backend.documents->size() == 0; }));
}

TEST_F(GrpcGenerate, TensorsByPieces) {
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(20));
  const auto stream = inference->ModelStreamInfer(&context);
  auto request = Parse<inference::ModelInferRequest>(R"(
      model_name: "gen" id: "g"
      inputs { name: "text" datatype: "BYTES" shape: [2]
               contents { bytes_contents: ["ab", "cd"] } }
      parameters { key: "max_tokens" value { int64_param: 8 } }
      parameters { key: "num_return_sequences" value { string_param: "2" } }
      parameters { key: "triton_enable_empty_final_response" value { bool_param: true } })");
  ASSERT_TRUE(stream->Write(request));
  request.set_id("bad");
  (*request.mutable_parameters())["temperature"].set_string_param("hot");
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  std::map<int, std::string> texts;
  std::map<int, int> tokens;
  int finals = 0;
  inference::ModelStreamInferResponse answer;
  while (stream->Read(&answer)) {
    const auto& response = answer.infer_response();
    const auto& parameters = response.parameters();
    finals += parameters.at("triton_final_response").bool_param() ? 1 : 0;
    if (response.id() == "bad") {
      EXPECT_NE(answer.error_message().find("temperature"), std::string::npos);
      continue;
    }
    EXPECT_EQ(answer.error_message(), "");
    ASSERT_EQ(response.outputs_size(), 2);
    EXPECT_EQ(response.outputs(0).name(), "text");
    EXPECT_EQ(response.outputs(1).name(), "token_ids");
    const auto index = static_cast<int>(parameters.at("sequence_index").int64_param());
    texts[index] += response.outputs(0).contents().bytes_contents(0);
    tokens[index] += response.outputs(1).contents().int64_contents_size();
    EXPECT_EQ(response.outputs(1).shape(1), response.outputs(1).contents().int64_contents_size());
    EXPECT_EQ(parameters.contains("compute_us"),
              parameters.at("triton_final_response").bool_param());
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(finals, 2);
  ASSERT_EQ(texts.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(texts[i], FakeContinuation(i < 2 ? "ab" : "cd", i % 2, 8));
    EXPECT_EQ(tokens[i], 8);
  }
}

TEST_F(GrpcGenerate, AnAbandonedStreamOfPiecesIsCancelled) {
  {
    grpc::ClientContext context;
    const auto stream = inference->ModelStreamInfer(&context);
    const auto request = Parse<inference::ModelInferRequest>(R"(
        model_name: "gen" inputs { name: "text" datatype: "BYTES" shape: [1]
                                   contents { bytes_contents: "ab" } }
        parameters { key: "max_tokens" value { int64_param: 90000 } })");
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(stream->Write(request));
    inference::ModelStreamInferResponse answer;
    ASSERT_TRUE(stream->Read(&answer));
    context.TryCancel();
    while (stream->Read(&answer)) {
    }
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Eventually([&] { return control->live_generations == 0; }));
  EXPECT_LT(control->decoded, 20 * 90000 / 2);
}

TEST_F(GrpcGenerate, ConfigSaysDecoupled) {
  grpc::ClientContext context;
  inference::ModelConfigRequest request;
  request.set_name("gen");
  inference::ModelConfigResponse response;
  ASSERT_TRUE(inference->ModelConfig(&context, request, &response).ok());
  EXPECT_TRUE(response.config().model_transaction_policy().decoupled());
}

}  // namespace
}  // namespace longview::testing
