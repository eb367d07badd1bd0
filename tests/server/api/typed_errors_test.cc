// Bad typed requests: code and field.
#include <gtest/gtest.h>

#include "server/errors.h"
#include "tests/server/api/infer_helpers.h"

namespace longview::testing {
namespace {

using models::Task;
namespace v1 = longview::v1;

struct Fixture : ::testing::Test {
  Fixture() {
    for (const auto& [name, task] :
         {std::pair{"qa", Task::kQuestionAnswering}, std::pair{"e", Task::kEmbedding},
          std::pair{"mlm", Task::kFillMask}}) {
      FakeOptions options;
      options.tasks = {task};
      backend.store.Add(name, options);
    }
  }

  // The status of a call given as protobuf text.
  template <typename Request, typename Response>
  absl::Status Try(server::Api::Pending (server::Api::*call)(const server::CallInfo&,
                                                             const Request&,
                                                             server::Reply<Response>),
                   const std::string& text) {
    Request request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
    Waiter<Response> waiter;
    (backend.api.*call)(TestCall(), request, waiter.reply());
    return waiter.Get().status();
  }

  template <typename Request, typename Response>
  void ExpectBad(server::Api::Pending (server::Api::*call)(const server::CallInfo&, const Request&,
                                                           server::Reply<Response>),
                 const std::string& text, const std::string& param) {
    const absl::Status status = Try(call, text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text << " -> " << status;
    EXPECT_EQ(server::GetErrorDetail(status).param, param) << text << " -> " << status;
  }

  Backend backend;
};

using TypedErrors = Fixture;

TEST_F(TypedErrors, ExactlyOneDocument) {
  ExpectBad(&server::Api::Classify, R"(model: "one")", "text");
  ExpectBad(&server::Api::Classify, R"(model: "one" text: "a" token_ids: [1])", "text");
  ExpectBad(&server::Api::Embed, R"(model: "e" truncate: true)", "text");
}

TEST_F(TypedErrors, EmptyTextIsADocument) {
  // The fake has no special tokens, so that its model is what refuses.
  const absl::Status status = Try(&server::Api::Classify, R"(model: "one" text: "")");
  EXPECT_EQ(status.message(), "text: 0 tokens; at least 1 is needed");
  EXPECT_EQ(backend.last_request().text, "");
  EXPECT_TRUE(Try(&server::Api::Classify, R"(model: "one" text: "" token_ids: [1])").ok());
  EXPECT_TRUE(Try(&server::Api::Classify, R"(model: "one" text: "a" text_pair: "")").ok());
  EXPECT_EQ(backend.last_request().text_pair, "");
}

TEST_F(TypedErrors, TheModelsRefusalsNameTheirField) {
  ExpectBad(&server::Api::Classify, R"(model: "one" token_ids: [256])", "token_ids");
  ExpectBad(&server::Api::Classify, R"(model: "one" text: "!prepare")", "text");
}

TEST_F(TypedErrors, FieldsThatDoNotGoTogether) {
  ExpectBad(&server::Api::Classify, R"(model: "one" token_ids: [1] text_pair: "b")", "text_pair");
  ExpectBad(&server::Api::Classify, R"(model: "one" text: "a" token_ids_pair: [1])",
            "token_ids_pair");
  ExpectBad(&server::Api::Classify, R"(model: "one" text: "a" top_k: -1)", "top_k");
  ExpectBad(&server::Api::AnswerQuestion, R"(model: "qa" text: "a")", "question");
  ExpectBad(&server::Api::AnswerQuestion, R"(model: "qa" token_ids: [1] question: "a")",
            "question");
  ExpectBad(&server::Api::AnswerQuestion,
            R"(model: "qa" text: "a" question: "b" max_answer_tokens: -3)", "max_answer_tokens");
  ExpectBad(&server::Api::FillMask, R"(model: "mlm" text: "a" top_k: -3)", "top_k");
  ExpectBad(&server::Api::Embed, R"(model: "e" text: "a" return_logits: true)", "return_logits");
  ExpectBad(&server::Api::Embed, R"(model: "e" text: "a" pooling: "none")", "pooling");
}

TEST_F(TypedErrors, Estimates) {
  ExpectBad(&server::Api::Estimate, R"(model: "one")", "text");
  ExpectBad(&server::Api::Estimate, R"(model: "one" text: "a" num_tokens: 3)", "num_tokens");
  ExpectBad(&server::Api::Estimate, R"(model: "one" num_tokens: -3)", "num_tokens");
  ExpectBad(&server::Api::Estimate, R"(model: "one" width: 3 height: 4)", "width");
  ExpectBad(&server::Api::Estimate, R"(model: "one" num_tokens: 3 max_tokens: 5)", "max_tokens");
  ExpectBad(&server::Api::Estimate, R"(model: "one" num_tokens: 3 n: 2)", "n");
}

TEST_F(TypedErrors, EstimatesOfPictures) {
  FakeOptions sees;
  sees.tasks = {Task::kObjectDetection};
  sees.max_tokens = 5000;
  backend.store.Add("sees", sees);
  const auto bad = [&](const std::string& fields, const std::string& field) {
    ExpectBad(&server::Api::Estimate, "model: \"sees\" " + fields, field);
  };
  bad("", "width");
  bad("width: 8", "height");
  bad("height: 8", "width");
  bad("width: -8 height: 8", "width");
  bad("width: 8 height: -1", "height");
  bad("width: 71 height: 71", "width");
  bad(R"(width: 8 height: 8 text: "a")", "text");
  bad("width: 8 height: 8 token_ids: 3", "token_ids");
  bad("num_tokens: 8", "num_tokens");
  bad("width: 8 height: 8 max_tokens: 4", "max_tokens");
  bad("width: 8 height: 8 n: 2", "n");
  ExpectBad(&server::Api::Estimate, R"(model: "one" height: 4)", "height");
}

TEST_F(TypedErrors, AModelWithoutTheTaskSaysWhatItDoes) {
  const absl::Status status = Try(&server::Api::FillMask, R"(model: "one" text: "a")");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  const std::string message(status.message());
  EXPECT_NE(message.find("\"one\""), std::string::npos) << message;
  EXPECT_NE(message.find("fill-mask"), std::string::npos) << message;
  EXPECT_NE(message.find("text-classification"), std::string::npos) << message;
}

TEST_F(TypedErrors, Detection) {
  const absl::Status status = Try(&server::Api::DetectObjects, R"(model: "one" image: "x")");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(std::string(status.message()).find("object-detection"), std::string::npos) << status;
  EXPECT_EQ(Try(&server::Api::DetectObjects, R"(model: "none" image: "x")").code(),
            absl::StatusCode::kNotFound);
}

TEST_F(TypedErrors, UnknownModelAndFailures) {
  EXPECT_EQ(Try(&server::Api::Classify, R"(model: "x" text: "a")").code(),
            absl::StatusCode::kNotFound);
  const absl::Status failed = Try(&server::Api::Classify, R"(model: "one" text: "!take")");
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(failed.message(), "internal error; request id test-request");
}

}  // namespace
}  // namespace longview::testing
