// 599 searches over Markov tables, against HuggingFace's generate: parameters go the way of a
// request's, by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/generation/sampling/beam_search.h"
#include "models/generation/sampling/sampler.h"
#include "tests/models/generation/golden.h"

namespace longview::models {
namespace {

constexpr int32_t kStart = 2, kEnd = 2;

struct Search {
  std::vector<BeamSearch::Finished> results;
  int steps = 0;
};

Search SearchTable(const GenerationSettings& settings, const std::vector<float>& table) {
  const auto vocab = static_cast<size_t>(std::sqrt(static_cast<double>(table.size())));
  const LogitsProcessors processors(settings, {});
  BeamSearch search(settings, processors,
                    TokenHistory({kStart}, static_cast<int>(vocab), processors.needs_distinct()),
                    nullptr);
  std::vector<int32_t> last(static_cast<size_t>(settings.beams), kStart);
  Search run;
  while (!search.done()) {
    std::vector<std::span<const float>> rows;
    for (const int32_t id : last) rows.push_back(std::span(table).subspan(id * vocab, vocab));
    EXPECT_TRUE(search.Advance(rows).ok());
    ++run.steps;
    last.clear();
    for (size_t b = 0; b < search.parents().size(); ++b) {
      last.push_back(search.token(static_cast<int>(b)));
    }
  }
  run.results = search.Take();
  return run;
}

std::vector<int32_t> GreedyTable(const GenerationSettings& settings,
                                 const std::vector<float>& table) {
  const auto vocab = static_cast<size_t>(std::sqrt(static_cast<double>(table.size())));
  const LogitsProcessors processors(settings, {});
  Sampler sampler(settings, processors);
  TokenHistory history({kStart}, static_cast<int>(vocab), processors.needs_distinct());
  do {
    const auto row = std::span(table).subspan(history.ids().back() * vocab, vocab);
    history.Append(*sampler.Choose(row, history, 0));
  } while (history.ids().back() != kEnd && history.tokens() < settings.max_length);
  return {history.generated().begin(), history.generated().end()};
}

// The answer of transformers 5.23 for the table of the specification's worked example.
TEST(BeamGolden, RenormalizesWhatPenaltiesLeave) {
  std::vector<float> table;
  for (const double p :
       {.10, .36, .34, .20, .41, .04, .50, .05, .50, .30, .0001, .1999, .27, .23, .05, .45}) {
    table.push_back(static_cast<float>(std::log(p)));
  }
  const std::vector<int32_t> eos = {kEnd};
  const SettingsContext context = {.vocab = 4, .prompt = 1, .room = 100, .eos = &eos};
  const auto search = [&](const char* name, const char* value, bool renormalize) {
    GenerationOptions options;
    options.num_beams = options.num_return_sequences = 2;
    EXPECT_TRUE(SetOption(options, "max_length", "6").ok());
    EXPECT_TRUE(SetOption(options, name, value).ok());
    EXPECT_TRUE(SetOption(options, "renormalize_logits", renormalize ? "true" : "false").ok());
    return SearchTable(*ResolveSettings(options, {}, context), table).results;
  };
  const auto expect = [](const std::vector<BeamSearch::Finished>& found,
                         const std::vector<std::vector<int32_t>>& tokens,
                         const std::vector<double>& scores) {
    ASSERT_EQ(found.size(), tokens.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].tokens, tokens[i]);
      EXPECT_NEAR(found[i].score, scores[i], 1e-5);
    }
  };
  expect(search("repetition_penalty", "2", true), {{0, 1, 2}, {1, 0, 3, 3, 3}},
         {-0.655957, -0.711840});
  expect(search("repetition_penalty", "2", false), {{0, 1, 2}, {0, 1, 0, 3, 3}},
         {-1.033698, -1.340890});
  expect(search("suppress_tokens", "[1]", true), {{0, 2}, {0, 3, 3, 3, 3}}, {-0.484497, -0.622210});
}

TEST(BeamGolden, FindsHuggingFacesSequences) {
  const nlohmann::json runs = GoldenJson("led/beam_toy/runs.json");
  const GoldenTensors inputs("led/beam_toy/inputs.safetensors");
  ASSERT_EQ(runs.size(), 599u);
  const std::vector<int32_t> eos = {kEnd};
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& run = runs[i];
    SCOPED_TRACE(i);
    SCOPED_TRACE(run["params"].dump());
    const auto table = inputs.Values<float>("table." + std::to_string(run["table"].get<int>()));
    GenerationOptions options;
    for (const auto& [name, value] : run["params"].items()) {
      ASSERT_TRUE(SetOption(options, name, value.dump()).ok()) << name;
    }
    const SettingsContext context = {
        .vocab = static_cast<int>(std::sqrt(static_cast<double>(table.size()))),
        .prompt = 1,
        .room = 100,
        .eos = &eos};
    const auto settings = ResolveSettings(options, {}, context);
    ASSERT_TRUE(settings.ok()) << settings.status();
    const auto& sequences = run["sequences"];
    if (settings->beams == 1) {
      std::vector<int32_t> want = sequences[0];
      want.erase(want.begin());
      EXPECT_EQ(GreedyTable(*settings, table), want);
      continue;
    }
    const Search search = SearchTable(*settings, table);
    EXPECT_EQ(search.steps, run["steps"].get<int>());
    ASSERT_EQ(search.results.size(), sequences.size());
    for (size_t s = 0; s < sequences.size(); ++s) {
      std::vector<int32_t> want = sequences[s];
      want.erase(want.begin());
      EXPECT_EQ(search.results[s].tokens, want);
      const double score = run["scores"][s];
      EXPECT_NEAR(search.results[s].score, score, 1e-5 * std::max(1.0, std::abs(score)));
    }
  }
}

}  // namespace
}  // namespace longview::models
