// Chunks of texts of any length, through models of golden/sentence_transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "models/tokenizing.h"
#include "tests/models/golden/golden_case.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using ::testing::HasSubstr;

constexpr int kLimit = 40;

// A directory of the fixtures with a limit of kLimit tokens.
class ChunksTest : public ::testing::Test {
 protected:
  std::unique_ptr<Model> Load(const std::string& name) {
    std::filesystem::copy(GoldenCase(name, "sentence_transformers").directory(),
                          directory_.Path(name), std::filesystem::copy_options::recursive);
    directory_.Write(name + "/longview.json", absl::StrCat(R"({"max_tokens": )", kLimit, "}"));
    auto model = LoadModel(directory_.Path(name), {.dtype = "fp32", .device = "cpu"});
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }
  std::unique_ptr<Model> Mean() { return Load("xlm_roberta_mean_dense_default_prompt"); }
  std::unique_ptr<Model> FirstToken() { return Load("roberta_list_mean_cls"); }

  const testing::TempDirectory directory_;
};

Request ChunkRequest(const std::string& text, int chunk_tokens) {
  Request request;
  request.task = Task::kEmbedding;
  request.text = text;
  request.prompt = "";
  request.tensors = {"embedding"};
  request.typed = false;
  request.chunk_tokens = chunk_tokens;
  return request;
}

std::string LongText() {
  std::string text;
  for (int i = 0; i < 60; ++i) absl::StrAppend(&text, i > 0 ? " " : "", "word ", i, ", an answer.");
  return text;
}

std::vector<int32_t> IdsOf(const Model& model, const std::string& text) {
  std::vector<int32_t> ids;
  const auto tokens = dynamic_cast<const Tokenizing&>(model).Tokenize(text, false);
  for (const TextToken& token : *tokens) ids.push_back(token.id);
  return ids;
}

void ExpectRefused(const Model& model, const Request& request, const std::string& problem) {
  const absl::Status status = model.PlanChunks(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(problem));
}

// The vector of tokens [begin, end) read in the sequence `<s> window </s>`.
std::vector<float> VectorInWindow(const Model& model, const std::vector<int32_t>& window, int begin,
                                  int end) {
  Request request = ChunkRequest("", 1);
  request.text.reset();
  request.prompt.reset();
  request.chunk_tokens.reset();
  std::vector<int32_t>& ids = request.tokens.emplace().ids;
  ids = {0};
  ids.insert(ids.end(), window.begin(), window.end());
  ids.push_back(2);
  TokenChunks& chunks = request.token_chunks.emplace();
  for (int t = begin; t < end; ++t) chunks.positions.push_back(t + 1);
  chunks.chunks = {{0, end - begin}};
  const Answer answer = RunAlone(model, request);
  const auto values = answer.tensors.at(0).floats();
  return {values.begin(), values.end()};
}

TEST_F(ChunksTest, WindowsOfALongText) {
  const auto model = Mean();
  const std::string text = LongText();
  const std::vector<int32_t> ids = IdsOf(*model, text);
  constexpr int kRoom = kLimit - 2, kOverlap = kLimit / 8, kStride = kRoom - kOverlap;
  ASSERT_GT(ids.size(), 5u * kRoom);
  constexpr int kChunk = kOverlap;  // Each lies whole in a window.
  const ChunkVectors got = RunChunks(*model, ChunkRequest(text, kChunk));
  EXPECT_EQ(got.plan.chunking, Chunking::kWindows);
  const int count = static_cast<int>(ids.size());
  ASSERT_EQ(std::ssize(got.vectors), (count + kChunk - 1) / kChunk);
  for (int i = 0; i < std::ssize(got.vectors); ++i) {
    const int begin = i * kChunk, end = std::min(begin + kChunk, count);
    int best = -1, deepest = -1;
    for (int window = 0; window == 0 || window + kOverlap < count; window += kStride) {
      const int last = std::min(window + kRoom, count);
      if (begin < window || end > last) continue;
      const int before = window == 0 ? count : begin - window;
      const int depth = std::min(before, last == count ? count : last - end);
      if (depth > deepest) best = window, deepest = depth;
    }
    ASSERT_GE(best, 0) << i;
    const std::vector<int32_t> window(ids.begin() + best,
                                      ids.begin() + std::min(best + kRoom, count));
    EXPECT_EQ(got.vectors[i], VectorInWindow(*model, window, begin - best, end - best)) << i;
  }
}

TEST_F(ChunksTest, NoTokenIsLostWhereChunksAreLongerThanTheOverlap) {
  const auto model = Mean();
  const std::string text = LongText();
  const std::vector<int32_t> ids = IdsOf(*model, text);
  for (const int chunk : {6, 19, 38}) {
    const auto plan = model->PlanChunks(ChunkRequest(text, chunk));
    ASSERT_TRUE(plan.ok()) << plan.status();
    std::vector<int32_t> read;
    for (const ChunkPlan::Source& source : plan->sources) {
      const Request& item = plan->items[static_cast<size_t>(source.item)];
      EXPECT_LE(item.tokens->ids.size(), kLimit);
      const auto [begin, end] = item.token_chunks->chunks[static_cast<size_t>(source.vector)];
      for (int32_t t = begin; t < end; ++t) {
        const auto at = static_cast<size_t>(item.token_chunks->positions[static_cast<size_t>(t)]);
        read.push_back(item.tokens->ids[at]);
      }
    }
    EXPECT_EQ(read, ids) << chunk;
  }
}

TEST_F(ChunksTest, ThePromptStandsInFrontOfEveryWindow) {
  const auto model = Mean();
  Request request = ChunkRequest(LongText(), 4);
  request.prompt = "an answer ";
  const std::vector<int32_t> prompt = IdsOf(*model, "an answer");
  const auto plan = model->PlanChunks(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_GT(plan->items.size(), 3u);
  for (const Request& item : plan->items) {
    EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), item.tokens->ids.begin() + 1));
    EXPECT_EQ(item.tokens->ids.back(), 2);
    EXPECT_LE(item.tokens->ids.size(), kLimit);
  }
}

TEST_F(ChunksTest, ChunksOfAModelThatPoolsByItsFirstTokenAreTextsOfTheirOwn) {
  const auto model = FirstToken();
  const std::string text = LongText();
  Request request = ChunkRequest(text, 20);
  const ChunkVectors got = RunChunks(*model, request);
  EXPECT_EQ(got.plan.chunking, Chunking::kSeparate);
  ASSERT_GT(got.vectors.size(), 5u);
  for (size_t i = 0; i < got.vectors.size(); ++i) {
    const auto [start, end] = got.plan.ranges[i];
    Request alone =
        ChunkRequest(text.substr(static_cast<size_t>(start), static_cast<size_t>(end - start)), 1);
    alone.chunk_tokens.reset();
    const Answer answer = RunAlone(*model, alone);
    const auto want = answer.tensors.at(0).floats();
    EXPECT_TRUE(std::equal(want.begin(), want.end(), got.vectors[i].begin())) << i;
  }
  request.chunk_tokens = kLimit;
  ExpectRefused(*model, request, "chunk_tokens: a chunk of 40 tokens is longer than the 38");
  request.chunk_tokens.reset();
  request.chunks = {{0, 10}, {0, 900}};
  ExpectRefused(*model, request, "chunks[1]: a chunk of ");
}

TEST_F(ChunksTest, ChunksOfTheirOwnShareThePrompt) {
  const auto model = FirstToken();
  const std::string text = LongText(), prompt = "an answer ";
  Request request = ChunkRequest(text, 20);
  request.prompt = prompt;
  const ChunkVectors got = RunChunks(*model, request);
  EXPECT_EQ(got.plan.chunking, Chunking::kSeparate);
  ASSERT_GT(got.vectors.size(), 5u);
  for (size_t i = 0; i < got.vectors.size(); ++i) {
    const Request& item = got.plan.items[i];
    EXPECT_EQ(item.shared_prompt, got.plan.items[0].shared_prompt);
    EXPECT_FALSE(item.prompt);
    const auto [start, end] = got.plan.ranges[i];
    Request alone =
        ChunkRequest(text.substr(static_cast<size_t>(start), static_cast<size_t>(end - start)), 1);
    alone.chunk_tokens.reset();
    alone.prompt = prompt;
    const Answer answer = RunAlone(*model, alone);
    const auto want = answer.tensors.at(0).floats();
    EXPECT_TRUE(std::equal(want.begin(), want.end(), got.vectors[i].begin())) << i;
  }
}

TEST_F(ChunksTest, BadWindowsAreRefused) {
  const auto model = Mean();
  Request request = ChunkRequest(LongText(), 4);
  for (const int overlap : {-1, 34}) {
    request.window_overlap = overlap;
    ExpectRefused(*model, request, absl::StrCat("window_overlap: ", overlap, " is not in [0, 33]"));
  }
  request.window_overlap = 33;
  EXPECT_TRUE(model->PlanChunks(request).ok());
  request.chunk_tokens = 39;
  ExpectRefused(*model, request, "chunk_tokens: a chunk of 39 tokens");
  request.chunk_tokens.reset();
  ExpectRefused(*model, request, "window_overlap: goes with chunks or chunk_tokens");
}

// Unless a request says so itself.
TEST_F(ChunksTest, TruncationByDefaultLeavesChunksWhole) {
  const std::string name = "xlm_roberta_mean_dense_default_prompt";
  Mean();
  auto model = LoadModel(directory_.Path(name), {.dtype = "fp32", .truncate = true});
  ASSERT_TRUE(model.ok()) << model.status();
  Request request = ChunkRequest(LongText(), 4);
  const auto plan = (*model)->PlanChunks(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->chunking, Chunking::kWindows);
  for (const auto& set :
       {+[](Request& r) { r.truncate = true; }, +[](Request& r) { r.truncate_tokens = 10; }}) {
    Request refused = request;
    set(refused);
    ExpectRefused(**model, refused, "does not go together with truncate");
  }
}

TEST_F(ChunksTest, WhoSaysWhetherTextsAreCut) {
  const std::string name = "xlm_roberta_mean_dense_default_prompt";
  Mean();
  Request request = ChunkRequest(LongText(), 4);
  request.chunk_tokens.reset();
  const auto cut = [&](bool flag) -> absl::StatusOr<int> {
    const auto model = LoadModel(directory_.Path(name), {.dtype = "fp32", .truncate = flag});
    ASSIGN_OR_RETURN(const auto item, (*model)->Prepare(request));
    return item->usage().truncated_tokens;
  };
  EXPECT_FALSE(cut(false).ok());
  const absl::StatusOr<int> tokens = cut(true);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_GT(*tokens, 0);
  request.truncate = false;
  EXPECT_FALSE(cut(true).ok());
  request.truncate = true;
  EXPECT_EQ(cut(false).value_or(0), *tokens);
  request.truncate.reset();
  // The directory stands above the flag.
  for (const bool truncate : {false, true}) {
    directory_.Write(name + "/longview.json", absl::StrCat(R"({"max_tokens": 40, "truncate": )",
                                                           truncate ? "true" : "false", "}"));
    EXPECT_EQ(cut(!truncate).ok(), truncate);
  }
}

TEST_F(ChunksTest, TextsAreCutToTheTokensThatARequestNames) {
  const auto model = Mean();
  Request request = ChunkRequest(LongText(), 4);
  request.chunk_tokens.reset();
  for (const auto& [tokens, left] : {std::pair(-1, kLimit), std::pair(10, 10), std::pair(3, 3)}) {
    request.truncate_tokens = tokens;
    const auto item = model->Prepare(request);
    ASSERT_TRUE(item.ok()) << item.status();
    EXPECT_EQ((*item)->usage().input_tokens, left);
  }
  const auto refused = [&](const std::string& problem) {
    const absl::Status status = model->Prepare(request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("truncate_prompt_tokens: " + problem));
  };
  for (const auto& [tokens, problem] :
       {std::pair(41, "41 is over the model's limit of 40"), std::pair(0, "0 is neither"),
        std::pair(-2, "-2 is neither"), std::pair(2, "2 leaves no room")}) {
    request.truncate_tokens = tokens;
    refused(problem);
  }
  request.truncate_tokens = 10;
  request.truncate = false;
  refused("does not go with truncate false");
}

}  // namespace
}  // namespace longview::models
