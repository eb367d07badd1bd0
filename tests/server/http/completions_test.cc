// POST /v1/completions: whole answers, server-sent events, errors, readers that leave.
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class CompletionsTest : public HttpServerTest {
 protected:
  explicit CompletionsTest(absl::FunctionRef<void(server::HttpServerOptions&)> change =
                               [](auto&) {})
      : HttpServerTest(change) {
    GeneratorOptions options;
    options.control = generator;
    backend_.store.AddGenerator("gen", options);
  }
  ~CompletionsTest() override { generator->advance.Open(); }

  json Complete(const json& request) {
    const RawResponse response = Post("/v1/completions", request.dump());
    EXPECT_EQ(response.status, 200) << response.body;
    return Body(response);
  }

  // The head of a streamed answer.
  static RawResponse Open(RawClient& client, const json& request) {
    client.Send(Request("/v1/completions", request.dump()));
    return client.ReadFinal().value_or(RawResponse{});
  }

  // The events of a whole streamed answer, without "data: "; comments as they are.
  std::vector<std::string> Events(const json& request) {
    RawClient client(port_);
    const RawResponse head = Open(client, request);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.Header("Content-Type"), "text/event-stream; charset=utf-8");
    EXPECT_EQ(head.Header("Transfer-Encoding"), "chunked");
    return Split(client.ReadChunks().value_or("no end of the body came"));
  }

  static std::vector<std::string> Split(std::string_view body) {
    std::vector<std::string> events;
    for (size_t end; (end = body.find("\n\n")) != std::string_view::npos;
         body.remove_prefix(end + 2)) {
      std::string_view event = body.substr(0, end);
      if (event.starts_with("data: ")) event.remove_prefix(6);
      events.emplace_back(event);
    }
    EXPECT_EQ(body, "");
    return events;
  }

  bool NothingIsLeft() {
    return Eventually([&] { return generator->live_generations == 0; });
  }
  // Waits until the server has cancelled so many calls.
  bool Cancelled(int calls) {
    return Eventually([&] { return backend_.cancelled() == calls; });
  }

  std::shared_ptr<GeneratorControl> generator = std::make_shared<GeneratorControl>();
};

TEST_F(CompletionsTest, AWholeAnswer) {
  const RawResponse response =
      Post("/v1/completions", R"({"model":"gen","prompt":"Once","max_tokens":5})",
           "x-request-id: abc\r\n");
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_THAT(std::string(response.Header("Server-Timing")), HasSubstr("compute;dur="));
  const json body = Body(response);
  EXPECT_EQ(body["id"], "cmpl-abc");
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["model"], "gen");
  EXPECT_GT(body["created"], 1'600'000'000);
  EXPECT_EQ(body["choices"], (json::array({{{"index", 0},
                                            {"text", FakeContinuation("Once", 0, 5)},
                                            {"logprobs", nullptr},
                                            {"finish_reason", "length"}}})));
  EXPECT_EQ(body["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(body["usage"]["completion_tokens"], 5);
  EXPECT_EQ(body["usage"]["total_tokens"], 9);
}

TEST_F(CompletionsTest, DefaultsAreOpenAis) {
  Complete({{"prompt", "Once"}});
  const models::GenerationOptions options = *backend_.last_request().generation;
  EXPECT_EQ(options.defaults, models::GenerationDefaults::kOpenAi);
  EXPECT_FALSE(options.max_new_tokens.has_value());
  EXPECT_FALSE(options.temperature.has_value());
}

TEST_F(CompletionsTest, EveryOptionReachesTheModel) {
  Complete({{"prompt", "Once"},
            {"max_tokens", 3},
            {"temperature", 0.7},
            {"top_p", 0.9},
            {"n", 2},
            {"stop", {"zz", "yy"}},
            {"seed", 4000000000},
            {"logprobs", 3},
            {"echo", true},
            {"top_k", 9},
            {"repetition_penalty", 1.2},
            {"min_tokens", 1},
            {"num_beams", 2},
            {"length_penalty", 0.5},
            {"no_repeat_ngram_size", 4},
            {"early_stopping", true},
            {"truncate", true},
            {"user", "me"},
            {"best_of", 2},
            {"presence_penalty", 0},
            {"frequency_penalty", 0.0},
            {"logit_bias", json::object()},
            {"suffix", nullptr},
            {"stream", false}});
  const models::Request request = backend_.last_request();
  const models::GenerationOptions& options = *request.generation;
  EXPECT_EQ(request.truncate, true);
  EXPECT_EQ(options.max_new_tokens, 3);
  EXPECT_EQ(options.temperature, 0.7);
  EXPECT_EQ(options.top_p, 0.9);
  EXPECT_EQ(options.num_return_sequences, 2);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"zz", "yy"}));
  EXPECT_EQ(options.seed, 4000000000u);
  EXPECT_EQ(options.logprobs, 3);
  EXPECT_TRUE(options.echo);
  EXPECT_EQ(options.top_k, 9);
  EXPECT_EQ(options.repetition_penalty, 1.2);
  EXPECT_EQ(options.min_new_tokens, 1);
  EXPECT_EQ(options.num_beams, 2);
  EXPECT_EQ(options.length_penalty, 0.5);
  EXPECT_EQ(options.no_repeat_ngram_size, 4);
  EXPECT_EQ(options.early_stopping, true);
}

TEST_F(CompletionsTest, SeedsOf64BitsAreMixedDown) {
  const auto seed = [this](const json& value) {
    Complete({{"prompt", "Once"}, {"seed", value}});
    return *backend_.last_request().generation->seed;
  };
  EXPECT_EQ(seed(7), 7u);
  EXPECT_EQ(seed(4294967295), 4294967295u);
  std::set<uint32_t> seeds = {0, 1, 5, 7};
  const std::vector<json> values = {-1,
                                    -5,
                                    int64_t{1} << 40,
                                    (int64_t{1} << 40) + 7,
                                    std::numeric_limits<int64_t>::max(),
                                    std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<uint64_t>::max() - 5};
  for (const json& value : values) {
    const uint32_t first = seed(value);
    EXPECT_EQ(seed(value), first);
    EXPECT_TRUE(seeds.insert(first).second) << value;
  }
}

TEST_F(CompletionsTest, MembersOfOtherClients) {
  Complete({{"prompt", "Once"},
            {"service_tier", "auto"},
            {"metadata", {{"a", "b"}}},
            {"store", true},
            {"do_sample", false},
            {"temperature", 0.7},
            {"return_full_text", true},
            {"unknown", nullptr}});
  const models::GenerationOptions options = *backend_.last_request().generation;
  EXPECT_EQ(options.temperature, 0.0);
  EXPECT_EQ(options.do_sample, false);
  EXPECT_TRUE(options.echo);
  const auto events =
      Events({{"prompt", "Once"},
              {"max_tokens", 2},
              {"stream", true},
              {"stream_options", {{"include_obfuscation", false}, {"include_usage", nullptr}}}});
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST_F(CompletionsTest, PromptsOfEveryForm) {
  const json one = Complete({{"prompt", "ab"}, {"max_tokens", 4}});
  const json ids = Complete({{"prompt", {'a', 'b'}}, {"max_tokens", 4}});
  EXPECT_EQ(ids["choices"], one["choices"]);
  const json texts = Complete({{"prompt", {"ab", "xyz"}}, {"max_tokens", 4}, {"n", 2}});
  ASSERT_EQ(texts["choices"].size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(texts["choices"][i]["index"], i);
    EXPECT_EQ(texts["choices"][i]["text"], FakeContinuation(i < 2 ? "ab" : "xyz", i % 2, 4));
  }
  EXPECT_EQ(texts["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(texts["usage"]["completion_tokens"], 16);
  const json lists = Complete({{"prompt", {{'a', 'b'}, {'x', 'y', 'z'}}}, {"max_tokens", 4}});
  ASSERT_EQ(lists["choices"].size(), 2u);
  EXPECT_EQ(lists["choices"][1]["text"], FakeContinuation("xyz", 0, 4));
}

TEST_F(CompletionsTest, ScoringAPrompt) {
  const json body =
      Complete({{"prompt", "abc"}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 0}});
  const json& choice = body["choices"][0];
  EXPECT_EQ(choice["text"], "abc");
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["logprobs"]["tokens"], (json{"a", "b", "c"}));
  EXPECT_EQ(choice["logprobs"]["token_logprobs"], (json{nullptr, -1.5, -1.5}));
  EXPECT_EQ(choice["logprobs"]["text_offset"], (json{0, 1, 2}));
  EXPECT_TRUE(choice["logprobs"]["top_logprobs"].is_null());
}

TEST_F(CompletionsTest, AStream) {
  const auto events = Events({{"prompt", "Once"}, {"max_tokens", 6}, {"stream", true}});
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json event = json::parse(events[i]);
    EXPECT_EQ(event["id"], json::parse(events[0])["id"]);
    EXPECT_EQ(event["object"], "text_completion");
    EXPECT_FALSE(event.contains("usage"));
    ASSERT_EQ(event["choices"].size(), 1u);
    text += event["choices"][0]["text"].get<std::string>();
    const bool last = i + 2 == events.size();
    EXPECT_EQ(event["choices"][0]["finish_reason"], last ? json("length") : json());
  }
  EXPECT_EQ(text, FakeContinuation("Once", 0, 6));
}

TEST_F(CompletionsTest, AStreamWithUsageChoicesAndLogprobs) {
  const auto events = Events({{"prompt", {"ab", "cd"}},
                              {"max_tokens", 6},
                              {"n", 2},
                              {"stream", true},
                              {"echo", true},
                              {"logprobs", 2},
                              {"stream_options", {{"include_usage", true}}}});
  ASSERT_GE(events.size(), 6u);
  std::map<int, std::string> texts;
  std::map<int, int64_t> next_offset;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const json event = json::parse(events[i]);
    EXPECT_TRUE(event["usage"].is_null());
    const json& choice = event["choices"][0];
    const int index = choice["index"];
    texts[index] += choice["text"].get<std::string>();
    for (const json& offset : choice["logprobs"]["text_offset"]) {
      EXPECT_EQ(offset, next_offset[index]++);
    }
    EXPECT_EQ(choice["logprobs"]["tokens"].size(), choice["logprobs"]["top_logprobs"].size());
  }
  ASSERT_EQ(texts.size(), 4u);
  for (const auto& [index, text] : texts) {
    const std::string prompt = index < 2 ? "ab" : "cd";
    EXPECT_EQ(text, prompt + FakeContinuation(prompt, index % 2, 6));
  }
  const json usage = json::parse(events[events.size() - 2]);
  EXPECT_EQ(usage["choices"], json::array());
  EXPECT_EQ(usage["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(usage["usage"]["completion_tokens"], 24);
  EXPECT_EQ(events.back(), "[DONE]");
}

class FillersTest : public CompletionsTest {
 protected:
  FillersTest()
      : CompletionsTest([](server::HttpServerOptions& options) {
          options.transport.stream_filler = absl::Milliseconds(20);
        }) {}
};

TEST_F(FillersTest, TheHeadLeavesAtAdmissionAndFillersFollow) {
  generator->advance.Close();
  RawClient client(port_);
  EXPECT_EQ(Open(client, {{"prompt", "Once"}, {"max_tokens", 3}, {"stream", true}}).status, 200);
  EXPECT_EQ(client.ReadChunk(), ": still at work\n\n");
  EXPECT_EQ(client.ReadChunk(), ": still at work\n\n");
  generator->advance.Open();
  const std::vector<std::string> events = Split(client.ReadChunks().value_or(""));
  EXPECT_EQ(events.back(), "[DONE]");
  // The connection goes on.
  client.Send(Request("/v1/completions", R"({"prompt":"a","max_tokens":1})"));
  EXPECT_EQ(client.ReadFinal().value_or(RawResponse{}).status, 200);
}

TEST_F(CompletionsTest, ErrorsBeforeAdmissionAreAnswersAfterItEvents) {
  const RawResponse refused = Post("/v1/completions", R"({"prompt":"!prepare","stream":true})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(Body(refused)["error"]["param"], "prompt");
  const auto events = Events({{"prompt", "!take"}, {"max_tokens", 2}, {"stream", true}});
  const json error = json::parse(events.back());
  EXPECT_EQ(error["error"]["type"], "server_error");
  EXPECT_EQ(error["error"]["code"], "INTERNAL");
}

TEST_F(CompletionsTest, Http10ReadsToTheEndOfTheConnection) {
  RawClient client(port_);
  const std::string body = R"({"prompt":"Once","max_tokens":3,"stream":true})";
  client.Send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  const RawResponse head = client.ReadFinal().value_or(RawResponse{});
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Header("Transfer-Encoding"), "");
  EXPECT_EQ(Split(client.ReadToEnd()).back(), "[DONE]");
}

TEST_F(CompletionsTest, AStreamThatIsLateEndsWithAnErrorWhenTheServerStops) {
  generator->advance.Close();
  RawClient client(port_);
  ASSERT_EQ(Open(client, {{"prompt", "Once"}, {"max_tokens", 9}, {"stream", true}}).status, 200);
  server_->Stop(server::SteadyNow() + absl::Milliseconds(20));
  const std::vector<std::string> events = Split(client.ReadChunks().value_or("no end came"));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(json::parse(events[0], nullptr, false)["error"]["code"], "UNAVAILABLE") << events[0];
  EXPECT_TRUE(client.ClosesWithin(20));
  EXPECT_EQ(backend_.cancelled(), 1);
}

TEST_F(CompletionsTest, AClientThatLeavesCancels) {
  for (int i = 0; i < 20; ++i) {
    generator->advance.Close();
    const int64_t before = generator->decoded;
    RawClient client(port_);
    ASSERT_EQ(Open(client, {{"prompt", "Once"}, {"max_tokens", 90000}, {"stream", true}}).status,
              200);
    ASSERT_TRUE(generator->advance.AwaitWaiting(1, absl::Seconds(20)));
    if (i % 2 == 1) {
      // Until the first tokens have left.
      while (generator->decoded < before + 2) {
        generator->advance.Admit(1);
        ASSERT_TRUE(generator->advance.AwaitWaiting(1, absl::Seconds(20)));
      }
      EXPECT_TRUE(client.ReadChunk().has_value());
    }
    const int64_t heard = generator->decoded;
    client.Close();
    ASSERT_TRUE(Cancelled(i + 1));
    generator->advance.Open();
    ASSERT_TRUE(NothingIsLeft());
    EXPECT_LE(generator->decoded, heard + 1)
        << "the step that ran goes to its end, no other begins";
  }
}

TEST_F(CompletionsTest, AWholeAnswerIsCancelledToo) {
  generator->advance.Close();
  RawClient client(port_);
  client.Send(Request("/v1/completions", R"({"prompt":"Once","max_tokens":90000})"));
  ASSERT_TRUE(generator->advance.AwaitWaiting(1, absl::Seconds(20)));
  client.Close();
  // Noticed before a byte of the answer is written.
  ASSERT_TRUE(Cancelled(1));
  generator->advance.Open();
  EXPECT_TRUE(NothingIsLeft());
  EXPECT_LE(generator->decoded, 1);
}

TEST_F(CompletionsTest, ReadersThatStopReadingAreCutAndCostNothing) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<RawClient>(port_));
    clients.back()->Send(
        Request("/v1/completions", R"({"prompt":"Once","max_tokens":200,"stream":true})"));
  }
  // None of them reads; one that comes after them is answered all the same.
  const auto events = Events({{"prompt", "Once"}, {"max_tokens", 200}, {"stream", true}});
  EXPECT_EQ(events.back(), "[DONE]");
  clients.clear();
  EXPECT_TRUE(NothingIsLeft());
}

struct BadCase {
  const char* name;
  json body;
  const char* param;
  int status = 400;
};

TEST_F(CompletionsTest, RefusalsNameTheMember) {
  const std::vector<std::string> stops(17, "x");
  const BadCase cases[] = {
      {"UnknownMember", {{"prompt", "a"}, {"temprature", 1}}, "temprature"},
      {"HuggingFaceName",
       {{"prompt", "a"}, {"max_tokens", 1}, {"max_new_tokens", 1}},
       "max_new_tokens"},
      {"NoPrompt", json::object(), "prompt"},
      {"EmptyList", {{"prompt", json::array()}}, "prompt"},
      {"MixedList", {{"prompt", {"a", 1}}}, "prompt"},
      {"EmptyIds", {{"prompt", {json::array({1}), json::array()}}}, "prompt"},
      {"PromptObject", {{"prompt", json::object()}}, "prompt"},
      {"WrongType", {{"prompt", "a"}, {"max_tokens", "5"}}, "max_tokens"},
      {"Fraction", {{"prompt", "a"}, {"n", 1.5}}, "n"},
      {"SeedFraction", {{"prompt", "a"}, {"seed", 5.5}}, "seed"},
      {"SeedTooLarge", {{"prompt", "a"}, {"seed", 1e20}}, "seed"},
      {"LongStop", {{"prompt", "a"}, {"stop", std::string(1025, 'x')}}, "stop"},
      {"TooManyStops", {{"prompt", "a"}, {"stop", stops}}, "stop"},
      {"StopType", {{"prompt", "a"}, {"stop", 5}}, "stop"},
      {"StopElement", {{"prompt", "a"}, {"stop", {"a", 5}}}, "stop"},
      {"BestOf", {{"prompt", "a"}, {"best_of", 3}}, "best_of"},
      {"PresencePenalty", {{"prompt", "a"}, {"presence_penalty", "a"}}, "presence_penalty"},
      {"FrequencyPenalty", {{"prompt", "a"}, {"frequency_penalty", true}}, "frequency_penalty"},
      {"LogitBias", {{"prompt", "a"}, {"logit_bias", json::array({5})}}, "logit_bias"},
      {"Suffix", {{"prompt", "a"}, {"suffix", "b"}}, "suffix"},
      {"StreamOptionsAlone",
       {{"prompt", "a"}, {"stream_options", {{"include_usage", true}}}},
       "stream_options"},
      {"TwoEchoes",
       {{"prompt", "a"}, {"echo", true}, {"return_full_text", false}},
       "return_full_text"},
      {"StreamOption",
       {{"prompt", "a"}, {"stream", true}, {"stream_options", {{"x", 1}}}},
       "stream_options.x"},
      {"Temperature", {{"prompt", "a"}, {"temperature", -1}}, "temperature"},
      {"TooLong", {{"prompt", "a"}, {"max_tokens", 1000000}}, "prompt"},
      {"OneOfSeveral", {{"prompt", {"a", "!prepare"}}}, "prompt"},
      {"WrongModel", {{"prompt", "a"}, {"model", "nobody"}}, nullptr, 404},
      {"WrongTask", {{"prompt", "a"}, {"model", "one"}}, "model", 400},
  };
  for (const BadCase& bad : cases) {
    for (const bool stream : {false, true}) {
      json body = bad.body;
      if (!body.contains("model")) body["model"] = "gen";
      if (stream && !body.contains("stream_options")) body["stream"] = true;
      const RawResponse response = Post("/v1/completions", body.dump());
      EXPECT_EQ(response.status, bad.status) << bad.name << ": " << response.body;
      if (bad.param != nullptr) {
        EXPECT_EQ(Body(response)["error"]["param"], bad.param) << bad.name << ": " << response.body;
      }
    }
  }
}

}  // namespace
}  // namespace longview::testing
