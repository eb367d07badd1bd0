// The typed generating calls, without a transport.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>

#include "server/api/typed/document_upload.h"
#include "tests/server/api/backend.h"

namespace longview::testing {
namespace {

namespace v1 = longview::v1;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// One call, read as fast as messages come.
struct Outcome {
  std::vector<v1::GenerateResponse> messages;
  absl::Status status;

  std::string Text(int index) const {
    std::string text;
    for (const auto& message : messages) {
      if (message.index() == index) text += message.text();
    }
    return text;
  }
};

class GenerateTest : public ::testing::Test {
 protected:
  GenerateTest() {
    GeneratorOptions options;
    options.control = control;
    options.max_tokens = 1000;
    backend.store.AddGenerator("gen", options);
  }

  Outcome Generate(const std::string& text) { return Generate(Parse<v1::GenerateRequest>(text)); }

  Outcome Generate(const v1::GenerateRequest& request) {
    struct Bell {
      std::mutex mutex;
      std::condition_variable rung;
      int rings = 0;
    };
    auto bell = std::make_shared<Bell>();
    const auto stream = backend.api.Generate(TestCall("Generate"), request, [bell] {
      std::lock_guard lock(bell->mutex);
      ++bell->rings;
      bell->rung.notify_all();
    });
    Outcome outcome;
    for (;;) {
      auto next = stream->Take();
      if (next.message) outcome.messages.push_back(*std::move(next.message));
      if (next.end) {
        outcome.status = *next.end;
        return outcome;
      }
      if (next.message) continue;
      std::unique_lock lock(bell->mutex);
      if (!bell->rung.wait_for(lock, std::chrono::seconds(20), [&] { return bell->rings > 0; })) {
        outcome.status = absl::UnknownError("nothing came within 20 s");
        return outcome;
      }
      bell->rings = 0;
    }
  }

  // A document that has read `parts`.
  absl::StatusOr<v1::Document> OpenDocument(const std::vector<std::string>& parts) {
    const auto upload = backend.api.OpenDocument(TestCall("OpenDocument"));
    for (const std::string& part : parts) {
      Waiter<bool> waiter;
      upload->Append(Parse<v1::OpenDocumentRequest>(part),
                     [reply = waiter.reply()](const absl::Status& status) mutable {
                       if (status.ok()) {
                         reply(true);
                       } else {
                         reply(status);
                       }
                     });
      if (const auto read = waiter.Get(); !read.ok()) return read.status();
    }
    return upload->Finish();
  }

  std::shared_ptr<GeneratorControl> control = std::make_shared<GeneratorControl>();
  Backend backend;
};

TEST_F(GenerateTest, MessagesAreNumberedAndTheLastHasTheTotals) {
  const Outcome outcome = Generate(R"(model: "gen" text: "Once" max_tokens: 5)");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.Text(0), FakeContinuation("Once", 0, 5));
  ASSERT_FALSE(outcome.messages.empty());
  int tokens = 0;
  for (size_t i = 0; i < outcome.messages.size(); ++i) {
    const v1::GenerateResponse& message = outcome.messages[i];
    EXPECT_EQ(message.number(), static_cast<int>(i));
    EXPECT_EQ(message.model(), "gen");
    EXPECT_EQ(message.version(), "1");
    tokens += message.token_ids_size();
    const bool last = i + 1 == outcome.messages.size();
    EXPECT_EQ(message.has_usage(), last);
    EXPECT_EQ(message.has_timing(), last);
    EXPECT_EQ(message.finish_reason(), last ? "length" : "");
  }
  EXPECT_EQ(tokens, 5);
  const v1::GenerateResponse& last = outcome.messages.back();
  EXPECT_EQ(last.usage().input_tokens(), 4);
  EXPECT_EQ(last.usage().output_tokens(), 5);
  EXPECT_GT(last.timing().total_seconds(), 0);
}

TEST_F(GenerateTest, SamplesHaveTheirIndex) {
  const Outcome outcome = Generate(R"(model: "gen" text: "Once" max_tokens: 6 n: 3)");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  std::map<int, std::string> reasons;
  for (const auto& message : outcome.messages) {
    EXPECT_EQ(reasons[message.index()], "") << "a message after the end of its sample";
    reasons[message.index()] = message.finish_reason();
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(outcome.Text(i), FakeContinuation("Once", i, 6));
    EXPECT_EQ(reasons[i], "length");
  }
}

TEST_F(GenerateTest, CollectGivesOneMessageForEachSample) {
  const Outcome outcome =
      Generate(R"(model: "gen" text: "Once" max_tokens: 6 n: 2 collect: true echo: true)");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  ASSERT_EQ(outcome.messages.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(outcome.messages[i].index(), i);
    EXPECT_EQ(outcome.messages[i].number(), i);
    EXPECT_EQ(outcome.messages[i].text(), "Once" + FakeContinuation("Once", i, 6));
    EXPECT_EQ(outcome.messages[i].token_ids_size(), 10);
    EXPECT_EQ(outcome.messages[i].has_usage(), i == 1);
  }
}

TEST_F(GenerateTest, EchoComesFirstInEverySample) {
  const Outcome outcome = Generate(R"(model: "gen" text: "Once" max_tokens: 2 n: 2 echo: true)");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(outcome.Text(i), "Once" + FakeContinuation("Once", i, 2));
  }
}

TEST_F(GenerateTest, OptionsReachTheModel) {
  const Outcome outcome = Generate(R"(
      model: "gen" text: "a" max_tokens: 3 temperature: 0.5 top_p: 0.25 top_k: 7
      repetition_penalty: 1.5 seed: 4000000000 stop: "zz" stop: "yy" num_beams: 2
      length_penalty: 0.5 no_repeat_ngram_size: 4 min_new_tokens: 1 early_stopping: true
      logprobs: 2)");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  const models::GenerationOptions options = *backend.last_request().generation;
  EXPECT_EQ(options.defaults, models::GenerationDefaults::kHuggingFace);
  EXPECT_EQ(options.max_new_tokens, 3);
  EXPECT_EQ(options.temperature, 0.5);
  EXPECT_EQ(options.top_p, 0.25);
  EXPECT_EQ(options.top_k, 7);
  EXPECT_EQ(options.repetition_penalty, 1.5);
  EXPECT_EQ(options.seed, 4000000000u);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"zz", "yy"}));
  EXPECT_EQ(options.num_beams, 2);
  EXPECT_EQ(options.length_penalty, 0.5);
  EXPECT_EQ(options.no_repeat_ngram_size, 4);
  EXPECT_EQ(options.min_new_tokens, 1);
  EXPECT_EQ(options.early_stopping, true);
  EXPECT_EQ(options.logprobs, 2);
  EXPECT_FALSE(options.do_sample.has_value());
  EXPECT_FALSE(options.num_return_sequences.has_value());
}

TEST_F(GenerateTest, TheOnlyGeneratorNeedsNoName) {
  const Outcome outcome = Generate(R"(text: "Once" max_tokens: 1)");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.messages.front().model(), "gen");
}

TEST_F(GenerateTest, RefusalsNameTheField) {
  const auto refusal = [&](const std::string& text) { return Generate(text).status; };
  EXPECT_EQ(refusal(R"(model: "one" text: "a")").code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refusal(R"(model: "other" text: "a")").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(refusal(R"(model: "gen")").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal(R"(model: "gen" text: "a" token_ids: 5)").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal(R"(model: "gen" document: "no-such" text: "a")").code(),
            absl::StatusCode::kNotFound);
  v1::GenerateRequest request = Parse<v1::GenerateRequest>(R"(model: "gen" text: "a")");
  request.set_temperature(std::numeric_limits<float>::quiet_NaN());
  const absl::Status status = Generate(request).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::string(status.message()).starts_with("temperature: ")) << status;
}

TEST_F(GenerateTest, AFailureAfterAdmissionEndsTheStream) {
  const Outcome outcome = Generate(R"(model: "gen" text: "!take" max_tokens: 3)");
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(outcome.status.message(), "internal error; request id test-request");
}

TEST_F(GenerateTest, CancelEndsTheStreamAndFreesTheGeneration) {
  control->advance.Close();
  auto request = Parse<v1::GenerateRequest>(R"(model: "gen" text: "Once" max_tokens: 500)");
  Waiter<bool> ended;
  std::unique_ptr<server::GenerateStream> stream;
  std::mutex mutex;
  {
    std::lock_guard lock(mutex);
    stream = backend.api.Generate(
        TestCall(), request, [&, reply = std::make_shared<server::Reply<bool>>(ended.reply())] {
          std::lock_guard taking(mutex);
          for (auto next = stream->Take(); next.message || next.end; next = stream->Take()) {
            if (next.end) return (*reply)(*next.end);
          }
        });
    EXPECT_FALSE(stream->Take().end.has_value());
  }
  ASSERT_TRUE(control->advance.AwaitWaiting(1, absl::Seconds(10)));
  stream->Cancel();
  control->advance.Open();
  EXPECT_EQ(ended.Get().status().code(), absl::StatusCode::kCancelled);
  backend.engine.Shutdown();
  EXPECT_EQ(control->live_generations, 0);
  EXPECT_LT(control->decoded, 3);
}

TEST_F(GenerateTest, DocumentsAreReadOnceAndAskedManyTimes) {
  const auto document =
      OpenDocument({R"(model: "gen" text: "Call me " lease_seconds: 30)", R"(text: "Ishmael.")"});
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->model(), "gen");
  EXPECT_EQ(document->usage().input_tokens(), 16);
  EXPECT_EQ(document->lease_seconds(), 30);
  EXPECT_GT(document->state_bytes(), 0);
  v1::GenerateRequest request = Parse<v1::GenerateRequest>(R"(text: " Some" max_tokens: 4)");
  request.set_document(document->handle());
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = Generate(request);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.Text(0), FakeContinuation("Call me Ishmael. Some", 0, 4));
  }
  request.set_model("one");
  EXPECT_EQ(Generate(request).status.code(), absl::StatusCode::kInvalidArgument);

  v1::CloseDocumentRequest close;
  close.set_handle(document->handle());
  const auto closed = backend.api.CloseDocument(TestCall(), close);
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_EQ(closed->usage().input_tokens(), 16);
  EXPECT_EQ(backend.api.CloseDocument(TestCall(), close).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(backend.documents->size(), 0u);
}

TEST_F(GenerateTest, UploadsThatFailLeaveNothingBehind) {
  EXPECT_EQ(OpenDocument({}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenDocument({R"(model: "one" text: "a")"}).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(OpenDocument({R"(model: "gen" text: "a")", R"(text: "!prepare")"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      OpenDocument({R"(model: "gen" text: "a")", R"(text: "b" token_ids: 1)"}).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      OpenDocument({R"(model: "gen" text: "a")", R"(model: "one" text: "b")"}).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenDocument({R"(model: "gen" lease_seconds: -1)"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend.documents->size(), 0u);
}

TEST_F(GenerateTest, AClientThatLeavesTakesItsDocumentAlong) {
  const auto upload = backend.api.OpenDocument(TestCall());
  Waiter<bool> read;
  control->advance.Close();
  upload->Append(Parse<v1::OpenDocumentRequest>(R"(model: "gen" text: "abc")"),
                 [reply = read.reply()](const absl::Status& status) mutable { reply(status); });
  ASSERT_TRUE(control->advance.AwaitWaiting(1, absl::Seconds(10)));
  EXPECT_EQ(backend.documents->size(), 1u);
  upload->Cancel();
  control->advance.Open();
  EXPECT_EQ(read.Get().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(backend.documents->size(), 0u);
}

}  // namespace
}  // namespace longview::testing
