// Every directory of golden/sentence_transformers through the library: embeddings by modules,
// prompts and dimensions; rows of a multi-vector model; scores of rerankers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

using nlohmann::json;

std::vector<std::string> CasesOf(const std::string& task) {
  std::vector<std::string> names;
  for (const std::string& name : GoldenCase::Names("sentence_transformers")) {
    const GoldenCase golden(name, "sentence_transformers");
    if (golden.description().at("task") == task) names.push_back(name);
  }
  return names;
}

// A request as the fixture's JSON spells it.
Request TextRequest(Task task, const std::string& text, const json& settings,
                    const std::string& tensor) {
  Request request;
  request.task = task;
  request.text = text;
  request.tensors = {tensor};
  request.typed = false;
  const auto read = [&](const char* key, auto& to) {
    if (settings.contains(key) && !settings[key].is_null()) to = settings[key];
  };
  if (settings.contains("prompt")) request.prompt = settings["prompt"].get<std::string>();
  if (settings.contains("prompt_name") && settings["prompt_name"].is_string()) {
    request.prompt_name = settings["prompt_name"].get<std::string>();
  }
  if (settings.contains("dimensions")) request.dimensions = settings["dimensions"].get<int>();
  if (settings.contains("normalize")) request.normalize = settings["normalize"].get<bool>();
  read("pooling", request.pooling);
  request.truncate = true;
  return request;
}

class EmbeddingGoldenTest : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EmbeddingGoldenTest);

TEST_P(EmbeddingGoldenTest, EveryCallAloneAndTogether) {
  const GoldenCase golden(GetParam(), "sentence_transformers");
  const auto model = golden.Load("fp32");
  const json texts = golden.Texts();
  double largest = 0;
  for (const json& call : texts["calls"]) {
    const std::string name = "embedding." + call["name"].get<std::string>();
    const std::vector<double> want = golden.Expected(name);
    std::vector<Request> requests;
    for (const json& text : texts["texts"]) {
      requests.push_back(TextRequest(Task::kEmbedding, text, call["request"], "embedding"));
    }
    const int count = static_cast<int>(requests.size());
    const std::vector<Answer> together = RunTogether(*model, requests);
    for (int i = 0; i < count; ++i) {
      const Answer alone = RunAlone(*model, requests[i]);
      const double error = LargestDifference(alone.tensors[0].floats(), RowOf(want, i, count));
      EXPECT_LE(error, golden.tolerance("embedding")) << name << " " << i;
      largest = std::max(largest, error);
      EXPECT_EQ(together[i].tensors[0].data, alone.tensors[0].data) << name << " " << i;
    }
  }
  std::printf("%-40s largest error %.2e\n", GetParam().c_str(), largest);
}

TEST_P(EmbeddingGoldenTest, LateChunks) {
  const GoldenCase golden(GetParam(), "sentence_transformers");
  const json texts = golden.Texts();
  if (!texts.contains("late_chunking")) GTEST_SKIP() << "no chunks";
  const auto model = golden.Load("fp32");
  for (const json& call : texts["late_chunking"]) {
    const json& settings = call["request"];
    Request request = TextRequest(Task::kEmbedding, texts["texts"][call["text"].get<int>()],
                                  settings, "embedding");
    request.truncate = false;
    for (const json& chunk : settings.value("chunks", json::array())) {
      request.chunks.push_back({chunk[0], chunk[1]});
    }
    if (settings.contains("chunk_tokens")) {
      request.chunk_tokens = settings["chunk_tokens"].get<int>();
    }
    request.chunk_overlap = settings.value("chunk_overlap", 0);
    const ChunkVectors got = RunChunks(*model, request);
    EXPECT_EQ(got.plan.chunking, Chunking::kLate);
    const Answer& answer = got.answers.at(0);
    EXPECT_LE(LargestDifference(answer.tensors[0].floats(), golden.Expected(call["expected"])),
              golden.tolerance("embedding"))
        << call["expected"];
    const std::vector<TextRange>& ranges = got.plan.ranges;
    ASSERT_EQ(ranges.size(), answer.tensors[0].shape[0]);
    if (!settings.contains("chunk_tokens")) continue;
    for (size_t i = 0; i < ranges.size(); ++i) {
      EXPECT_EQ(ranges[i].start, call["token_spans"][i][0]);
      EXPECT_EQ(ranges[i].end, call["token_spans"][i][1]);
    }
    request.truncate = true;
    EXPECT_TRUE(absl::IsInvalidArgument(model->PlanChunks(request).status()));
  }
}

// Chunks may overlap: what pooling them costs grows with all of their tokens.
TEST_P(EmbeddingGoldenTest, LateChunksArePriced) {
  const GoldenCase golden(GetParam(), "sentence_transformers");
  const json texts = golden.Texts();
  if (!texts.contains("late_chunking")) GTEST_SKIP() << "no chunks";
  const auto model = golden.Load("fp32");
  const json& call = texts["late_chunking"][0];
  Request request = TextRequest(Task::kEmbedding, texts["texts"][call["text"].get<int>()],
                                call["request"], "embedding");
  request.truncate = false;
  const auto ask = [&](size_t count) {
    request.chunks.assign(count, {0, 20});
    return *model->Prepare(model->PlanChunks(request)->items.at(0));
  };
  const Cost one = ask(1)->cost(), many = ask(4096)->cost();
  EXPECT_GT(many.seconds, 1.5 * one.seconds);
  EXPECT_GE(many.workspace_bytes - one.workspace_bytes, 4095 * 16 * sizeof(float));
  const Answer answer = RunAlone(*model, model->PlanChunks(request)->items.at(0));
  ASSERT_EQ(answer.tensors[0].shape[0], 4096);
  const auto values = answer.tensors[0].floats();
  const size_t width = values.size() / 4096;
  EXPECT_TRUE(std::equal(values.begin(), values.begin() + static_cast<ptrdiff_t>(width),
                         values.end() - static_cast<ptrdiff_t>(width)));
}

TEST_P(EmbeddingGoldenTest, BadSettingsAreRefused) {
  const GoldenCase golden(GetParam(), "sentence_transformers");
  const auto model = golden.Load("fp32");
  const json texts = golden.Texts();
  for (const json& settings : texts["refused"]) {
    const auto item =
        model->Prepare(TextRequest(Task::kEmbedding, "some text", settings, "embedding"));
    EXPECT_TRUE(absl::IsInvalidArgument(item.status())) << settings;
  }
  Request ids = TokenRequest(Task::kEmbedding, {{5, 6, 7}, {}, {}, {}}, {"embedding"});
  EXPECT_TRUE(model->Prepare(ids).ok());
  ids.prompt_name = "query";
  EXPECT_TRUE(absl::IsInvalidArgument(model->Prepare(ids).status()));
}

INSTANTIATE_TEST_SUITE_P(Cases, EmbeddingGoldenTest, ::testing::ValuesIn(CasesOf("embeddings")),
                         [](const auto& info) { return info.param; });

TEST(MultiVectorGoldenTest, RowsOfTokensWithPrompts) {
  for (const std::string& name : CasesOf("multi-vector")) {
    SCOPED_TRACE(name);
    const GoldenCase golden(name, "sentence_transformers");
    const auto model = golden.Load("fp32");
    EXPECT_EQ(model->info().task, Task::kMultiVector);
    const json texts = golden.Texts();
    for (size_t i = 0; i < texts.size(); ++i) {
      const Answer answer = RunAlone(
          *model, TextRequest(Task::kMultiVector, texts[i]["text"], texts[i], "last_hidden_state"));
      EXPECT_LE(LargestDifference(answer.tensors[0].floats(),
                                  golden.Expected("last_hidden_state." + std::to_string(i))),
                golden.tolerance("hidden"))
          << i;
    }
    const auto item = model->Prepare(TextRequest(Task::kEmbedding, "x", {}, "embedding"));
    EXPECT_TRUE(absl::IsUnimplemented(item.status())) << item.status();
  }
}

TEST(RerankGoldenTest, ScoresAndLogits) {
  for (const std::string& name : CasesOf("rerank")) {
    SCOPED_TRACE(name);
    const GoldenCase golden(name, "sentence_transformers");
    const auto model = golden.Load("fp32");
    const json texts = golden.Texts();
    for (size_t q = 0; q < texts["queries"].size(); ++q) {
      std::vector<Request> requests;
      for (const json& document : texts["documents"]) {
        requests.push_back(TextRequest(Task::kRerank, texts["queries"][q], {}, "logits"));
        requests.back().text_pair = document.get<std::string>();
        requests.back().typed = true;
      }
      std::vector<float> scores, raw;
      for (const Answer& answer : RunTogether(*model, requests)) {
        scores.push_back(answer.pair_score.score);
        raw.push_back(answer.pair_score.raw);
      }
      EXPECT_LE(LargestDifference(scores, golden.Expected("scores." + std::to_string(q))),
                golden.tolerance("scores"));
      EXPECT_LE(LargestDifference(raw, golden.Expected("raw." + std::to_string(q))),
                golden.tolerance("logits"));
    }
    Request lonely = TextRequest(Task::kRerank, "a query", {}, "logits");
    EXPECT_TRUE(absl::IsInvalidArgument(model->Prepare(lonely).status()));
  }
}

}  // namespace
}  // namespace longview::models
