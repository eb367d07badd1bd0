#include "models/quantize/probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace longview::models {
namespace {

using ::testing::HasSubstr;

ModelInfo Doing(std::vector<Task> tasks) {
  ModelInfo info;
  info.architecture = "SomeModel";
  info.task = tasks[0];
  info.tasks = std::move(tasks);
  info.labels = {"a", "b"};
  info.has_tokenizer = true;
  return info;
}

GivenInputs Texts(int count) {
  GivenInputs inputs;
  for (int i = 0; i < count; ++i) {
    inputs.texts.push_back({"Text " + std::to_string(i) + ". And more.", ""});
  }
  return inputs;
}

std::vector<Probe> ProbesOf(const ModelInfo& info, const GivenInputs& inputs) {
  const auto probes = MakeProbes(info, inputs);
  EXPECT_TRUE(probes.ok()) << probes.status();
  return probes.ok() ? *probes : std::vector<Probe>();
}

TEST(ProbesTest, TextsAreAskedForWhatTheModelDoesAndCut) {
  for (const auto& [task, comparison, asked] :
       {std::tuple{Task::kTextClassification, Comparison::kTop1, Task::kTextClassification},
        std::tuple{Task::kTokenClassification, Comparison::kLabels, Task::kTokenClassification},
        std::tuple{Task::kQuestionAnswering, Comparison::kSpan, Task::kQuestionAnswering},
        std::tuple{Task::kEmbedding, Comparison::kCosine, Task::kEmbedding},
        std::tuple{Task::kMultipleChoice, Comparison::kCosine, Task::kEmbedding},
        std::tuple{Task::kTextGeneration, Comparison::kBitsPerByte, Task::kTextGeneration},
        std::tuple{Task::kText2TextGeneration, Comparison::kBitsPerToken,
                   Task::kText2TextGeneration}}) {
    const std::vector<Probe> probes = ProbesOf(Doing({task, Task::kEmbedding}), Texts(3));
    ASSERT_EQ(probes.size(), 3u) << TaskName(task);
    for (const Probe& probe : probes) {
      EXPECT_EQ(probe.comparison, comparison) << TaskName(task);
      EXPECT_EQ(probe.request.task, asked);
      EXPECT_TRUE(*probe.request.truncate);
    }
  }
}

TEST(ProbesTest, ARegressionIsComparedByItsEmbedding) {
  ModelInfo info = Doing({Task::kTextClassification, Task::kEmbedding});
  info.labels = {"score"};
  info.problem_type = ProblemType::kRegression;
  EXPECT_EQ(ProbesOf(info, Texts(1))[0].comparison, Comparison::kCosine);
}

TEST(ProbesTest, MasksAreLookedForInEveryText) {
  const auto probes = ProbesOf(Doing({Task::kFillMask, Task::kEmbedding}), Texts(2));
  ASSERT_EQ(probes.size(), 4u);
  EXPECT_EQ(probes[0].comparison, Comparison::kCosine);
  EXPECT_EQ(probes[1].comparison, Comparison::kMaskTop1);
}

TEST(ProbesTest, PairsAreOfNeighboursUnlessGiven) {
  GivenInputs inputs = Texts(3);
  inputs.texts[1].pair = "its own";
  const auto probes = ProbesOf(Doing({Task::kTextPairClassification}), inputs);
  ASSERT_EQ(probes.size(), 3u);
  EXPECT_EQ(*probes[0].request.text_pair, inputs.texts[1].text);
  EXPECT_EQ(*probes[1].request.text_pair, "its own");
  EXPECT_EQ(*probes[2].request.text_pair, inputs.texts[0].text);
}

TEST(ProbesTest, QueriesRankThemselvesAmongOthers) {
  const GivenInputs inputs = Texts(100);
  const auto probes = ProbesOf(
      Doing({Task::kTextClassification, Task::kTextPairClassification, Task::kRerank}), inputs);
  ASSERT_EQ(probes.size(), kMostQueries * kMostDocuments);
  std::vector<std::set<std::string>> documents(kMostQueries);
  for (const Probe& probe : probes) {
    EXPECT_EQ(*probe.request.text, "Text " + std::to_string(probe.query * 10) + ".");
    documents[static_cast<size_t>(probe.query)].insert(*probe.request.text_pair);
  }
  for (size_t query = 0; query < kMostQueries; ++query) {
    EXPECT_EQ(documents[query].size(), kMostDocuments);
    EXPECT_TRUE(documents[query].contains(inputs.texts[query * 10].text));
  }
}

TEST(ProbesTest, PicturesAreForModelsOfPictures) {
  GivenInputs inputs;
  inputs.pictures = {"a.png", "b.png"};
  const auto boxes = ProbesOf(Doing({Task::kObjectDetection, Task::kImageFeatures}), inputs);
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[1].picture, "b.png");
  EXPECT_EQ(boxes[0].comparison, Comparison::kBoxes);
  EXPECT_TRUE(boxes[0].request.typed);
  EXPECT_EQ(ProbesOf(Doing({Task::kImageFeatures}), inputs)[0].comparison, Comparison::kCosine);
}

TEST(ProbesTest, InputsOfTheWrongKindAreRefused) {
  GivenInputs pictures;
  pictures.pictures = {"a.png"};
  const auto said = [](const ModelInfo& info, const GivenInputs& inputs) {
    return std::string(MakeProbes(info, inputs).status().message());
  };
  EXPECT_THAT(said(Doing({Task::kEmbedding}), pictures), HasSubstr("reads texts: none were given"));
  EXPECT_THAT(said(Doing({Task::kImageClassification}), Texts(1)),
              HasSubstr("reads pictures: none were given"));
  ModelInfo silent = Doing({Task::kEmbedding});
  silent.has_tokenizer = false;
  EXPECT_THAT(said(silent, Texts(1)), HasSubstr("no tokenizer"));
}

TEST(ProbesTest, AnOutputIsMadeGreedily) {
  const Probe probe = ProbesOf(Doing({Task::kText2TextGeneration}), Texts(1))[0];
  EXPECT_EQ(*probe.request.generation->max_new_tokens, 0);
  const Request request = OutputRequest(probe);
  EXPECT_EQ(*request.generation->max_new_tokens, kOutputTokens);
  EXPECT_FALSE(*request.generation->do_sample);
  EXPECT_TRUE(request.tensors.empty());
}

}  // namespace
}  // namespace longview::models
