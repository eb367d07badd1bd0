// longview.v1 through a channel.
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "longview/v1/models.grpc.pb.h"
#include "longview/v1/text.grpc.pb.h"
#include "longview/v1/vision.grpc.pb.h"
#include "tests/server/grpc/fixture.h"

namespace longview::testing {
namespace {

using models::Task;
namespace v1 = longview::v1;

class TypedServices : public GrpcFixture {
 protected:
  TypedServices()
      : text(v1::TextService::NewStub(channel)),
        vision(v1::VisionService::NewStub(channel)),
        models(v1::ModelService::NewStub(channel)) {
    for (const auto& [name, task] :
         {std::pair{"ner", Task::kTokenClassification}, std::pair{"qa", Task::kQuestionAnswering},
          std::pair{"mlm", Task::kFillMask}, std::pair{"e", Task::kEmbedding}}) {
      FakeOptions options;
      options.tasks = {task};
      backend.store.Add(name, options);
    }
  }

  std::unique_ptr<v1::TextService::Stub> text;
  std::unique_ptr<v1::VisionService::Stub> vision;
  std::unique_ptr<v1::ModelService::Stub> models;
};

TEST_F(TypedServices, EveryTextCallAnswers) {
  {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    const auto status = text->Classify(
        &context, Parse<v1::ClassifyRequest>(R"(model: "one" text: "abc")"), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.labels_size(), 3);
  }
  {
    grpc::ClientContext context;
    v1::ClassifyTokensResponse response;
    ASSERT_TRUE(text->ClassifyTokens(
                        &context, Parse<v1::ClassifyTokensRequest>(R"(model: "ner" text: "A Bc")"),
                        &response)
                    .ok());
    EXPECT_EQ(response.entities_size(), 2);
  }
  {
    grpc::ClientContext context;
    v1::AnswerQuestionResponse response;
    ASSERT_TRUE(text->AnswerQuestion(&context,
                                     Parse<v1::AnswerQuestionRequest>(
                                         R"(model: "qa" text: "Ada wrote" question: "who")"),
                                     &response)
                    .ok());
    EXPECT_EQ(response.answers(0).text(), "Ada");
  }
  {
    grpc::ClientContext context;
    v1::FillMaskResponse response;
    ASSERT_TRUE(text->FillMask(&context, Parse<v1::FillMaskRequest>(R"(model: "mlm" text: "a_")"),
                               &response)
                    .ok());
    EXPECT_EQ(response.masks(0).candidates_size(), 5);
  }
  {
    grpc::ClientContext context;
    v1::EmbedResponse response;
    ASSERT_TRUE(
        text->Embed(&context, Parse<v1::EmbedRequest>(R"(model: "e" text: "a")"), &response).ok());
    EXPECT_EQ(response.embedding_size(), 4);
  }
}

TEST_F(TypedServices, ModelCalls) {
  grpc::ClientContext list_context, get_context, unload_context, load_context, estimate_context;
  v1::ListModelsResponse list;
  ASSERT_TRUE(models->ListModels(&list_context, {}, &list).ok());
  EXPECT_EQ(list.models_size(), 5);
  v1::Model model;
  ASSERT_TRUE(
      models->GetModel(&get_context, Parse<v1::GetModelRequest>(R"(model: "e")"), &model).ok());
  EXPECT_EQ(model.task(), "embedding");
  ASSERT_TRUE(
      models->UnloadModel(&unload_context, Parse<v1::UnloadModelRequest>(R"(model: "e")"), &model)
          .ok());
  EXPECT_EQ(model.state(), "UNAVAILABLE");
  ASSERT_TRUE(
      models->LoadModel(&load_context, Parse<v1::LoadModelRequest>(R"(model: "e")"), &model).ok());
  EXPECT_EQ(model.state(), "READY");
  v1::EstimateResponse estimate;
  ASSERT_TRUE(models
                  ->Estimate(&estimate_context,
                             Parse<v1::EstimateRequest>(R"(model: "one" num_tokens: 10)"),
                             &estimate)
                  .ok());
  EXPECT_EQ(estimate.workspace_bytes(), 10240);
}

TEST_F(TypedServices, EstimateOfAPicture) {
  FakeOptions sees;
  sees.tasks = {Task::kObjectDetection};
  sees.max_tokens = 5000;
  backend.store.Add("sees", sees);
  const auto ask = [&](const std::string& request, v1::EstimateResponse* response) {
    grpc::ClientContext context;
    return models->Estimate(&context, Parse<v1::EstimateRequest>(request), response);
  };
  v1::EstimateResponse estimate;
  ASSERT_TRUE(ask(R"(model: "sees" width: 60 height: 50)", &estimate).ok());
  EXPECT_EQ(estimate.workspace_bytes(), 1024.0 * 3000);
  EXPECT_EQ(estimate.usage().width(), 60);
  EXPECT_EQ(estimate.usage().height(), 50);
  const grpc::Status over = ask(R"(model: "sees" width: 71 height: 71)", &estimate);
  EXPECT_EQ(over.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(over.error_message().find("71 x 71 is 5041 pixels, the limit is 5000"),
            std::string::npos);
}

TEST_F(TypedServices, ErrorsCarryDetails) {
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  const grpc::Status status = text->Classify(
      &context, Parse<v1::ClassifyRequest>(R"(model: "one" text: "a" top_k: -1)"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.domain(), "longview");
  EXPECT_EQ(info.metadata().at("param"), "top_k");
}

TEST_F(TypedServices, TheRequestIdComesBack) {
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "mine-1");
  v1::ListModelsResponse list;
  ASSERT_TRUE(models->ListModels(&context, {}, &list).ok());
  const auto found = context.GetServerInitialMetadata().find("x-request-id");
  ASSERT_NE(found, context.GetServerInitialMetadata().end());
  EXPECT_EQ(std::string(found->second.data(), found->second.size()), "mine-1");
}

TEST_F(TypedServices, TasksNoModelHasAreUnimplemented) {
  grpc::ClientContext detect_context, classify_context, features_context;
  v1::DetectObjectsResponse detections;
  const grpc::Status detect = vision->DetectObjects(
      &detect_context, Parse<v1::DetectObjectsRequest>(R"(model: "one" image: "x")"), &detections);
  EXPECT_EQ(detect.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_NE(detect.error_message().find("text-classification"), std::string::npos);
  v1::ClassifyResponse classes;
  EXPECT_EQ(vision
                ->ClassifyImage(&classify_context,
                                Parse<v1::ClassifyImageRequest>(R"(model: "one")"), &classes)
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  v1::ExtractFeaturesResponse features;
  EXPECT_EQ(vision
                ->ExtractFeatures(&features_context,
                                  Parse<v1::ExtractFeaturesRequest>(R"(model: "x")"), &features)
                .error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(TypedServices, GenerationIsUnimplemented) {
  grpc::ClientContext generate_context, open_context, close_context;
  const auto stream =
      text->Generate(&generate_context, Parse<v1::GenerateRequest>(R"(model: "one" text: "a")"));
  v1::GenerateResponse piece;
  EXPECT_FALSE(stream->Read(&piece));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);

  v1::Document document;
  const auto writer = text->OpenDocument(&open_context, &document);
  writer->Write(Parse<v1::OpenDocumentRequest>(R"(model: "one" text: "a")"));
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);

  EXPECT_EQ(text->CloseDocument(&close_context, Parse<v1::CloseDocumentRequest>(R"(handle: "h1")"),
                                &document)
                .error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(TypedServices, CancelReachesTheEngine) {
  backend.control->advance.Close();
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  grpc::Status status;
  std::thread caller([&] {
    status = text->Classify(&context, Parse<v1::ClassifyRequest>(R"(model: "one" text: "a")"),
                            &response);
  });
  EXPECT_TRUE(backend.control->advance.AwaitWaiting(1, absl::Seconds(10)));
  context.TryCancel();
  caller.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return backend.cancelled() == 1; }));
  backend.control->advance.Open();
}

TEST_F(TypedServices, TheDeadlineTravels) {
  backend.AddSlow();
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(30));
  v1::ClassifyResponse response;
  const grpc::Status status =
      text->Classify(&context, Parse<v1::ClassifyRequest>(R"(model: "slow" text: "a")"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  // gRPC rounds what it sends up, so the server's may lie a little behind the client's.
  const double left = Backend::SecondsLeft(status.error_message());
  EXPECT_GT(left, 20) << status.error_message();
  EXPECT_LT(left, 35) << status.error_message();
}

TEST_F(TypedServices, NobodyWaitsBehindTheDeadline) {
  FakeOptions layered;
  layered.layers = 2;
  layered.control = backend.control;
  backend.store.Add("layered", layered);
  backend.control->advance.Close();
  ASSERT_TRUE(channel->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(20))));
  int ended = 0;
  // On a busy machine a deadline may pass before the engine has the call.
  for (absl::Duration timeout = absl::Milliseconds(50); backend.prepared() == 0; timeout *= 2) {
    ASSERT_LT(timeout, absl::Seconds(20));
    ended = backend.ended_early();
    grpc::ClientContext context;
    SetTimeout(context, timeout);
    v1::ClassifyResponse response;
    const grpc::Status status = text->Classify(
        &context, Parse<v1::ClassifyRequest>(R"(model: "layered" text: "a")"), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_TRUE(Eventually([&] { return backend.ended_early() > ended; }));
  backend.control->advance.Open();
  EXPECT_TRUE(Eventually([&] { return backend.engine.calls() == 0; }));
  EXPECT_LE(backend.control->layers_run, 1) << "the one that ran goes to its end";
  EXPECT_EQ(backend.control->taken, 0);
}

TEST_F(TypedServices, ManyCancelledCallsLeaveNothingBehind) {
  backend.control->advance.Close();
  constexpr int kCalls = 500;
  {
    grpc::CompletionQueue queue;
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ClassifyResponse>>> readers;
    std::vector<v1::ClassifyResponse> responses(kCalls);
    std::vector<grpc::Status> statuses(kCalls);
    for (int i = 0; i < kCalls; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      readers.push_back(text->AsyncClassify(
          contexts[i].get(), Parse<v1::ClassifyRequest>(R"(model: "one" text: "a")"), &queue));
      readers[i]->Finish(&responses[i], &statuses[i], nullptr);
    }
    for (auto& context : contexts) context->TryCancel();
    for (int i = 0; i < kCalls; ++i) {
      void* tag = nullptr;
      bool ok = false;
      ASSERT_TRUE(queue.Next(&tag, &ok));
    }
    queue.Shutdown();
    for (const grpc::Status& status : statuses) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
    }
  }
  backend.control->advance.Open();
  EXPECT_TRUE(Eventually([&] { return backend.control->live_items == 0; }));
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  EXPECT_TRUE(
      text->Classify(&context, Parse<v1::ClassifyRequest>(R"(model: "one" text: "a")"), &response)
          .ok());
}

}  // namespace
}  // namespace longview::testing
