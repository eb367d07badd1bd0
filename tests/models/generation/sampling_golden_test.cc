// The distribution the sampler draws from, against HuggingFace's processors.
#include <gtest/gtest.h>

#include <cmath>

#include "models/generation/sampling/candidate_filter.h"
#include "models/generation/sampling/logits_processors.h"
#include "tests/models/generation/golden.h"

namespace longview::models {
namespace {

TEST(SamplingGolden, DrawsFromHuggingFacesDistribution) {
  const nlohmann::json description = GoldenJson("transformer_ls_lm/sampling/case.json");
  const GoldenTensors inputs("transformer_ls_lm/sampling/inputs.safetensors");
  const GoldenTensors expected("transformer_ls_lm/sampling/expected.safetensors");
  ASSERT_GT(description["settings"].size(), 30u);
  for (const auto& entry : description["settings"]) {
    const std::string row = entry["row"];
    const std::string name = row + "." + std::to_string(entry["index"].get<int>());
    SCOPED_TRACE(name);
    GenerationSettings settings;
    settings.sample = true;
    settings.repetition_penalty = entry["repetition_penalty"];
    settings.temperature = entry["temperature"];
    settings.top_k = entry["top_k"];
    settings.top_p = entry["top_p"];

    const std::vector<float> logits = inputs.Values<float>("logits." + row);
    std::vector<double> scores(logits.begin(), logits.end());
    const std::vector<int64_t> context = inputs.Values<int64_t>("context_ids." + row);
    const TokenHistory history({context.begin(), context.end()}, static_cast<int>(scores.size()),
                               true);
    LogitsProcessors(settings, history.ids()).Apply(history, scores);
    CandidateFilter filter(settings, 1);
    const std::span<const Candidate> kept = filter.Keep(scores);
    EXPECT_EQ(kept.size(), entry["kept"].get<size_t>());

    std::vector<double> probabilities(scores.size());
    double total = 0;
    for (const Candidate& candidate : kept) total += candidate.weight;
    for (const Candidate& candidate : kept) {
      probabilities[candidate.id] = candidate.weight / total;
    }
    const std::vector<float> want = expected.Values<float>("probs." + name);
    ASSERT_EQ(want.size(), probabilities.size());
    for (size_t id = 0; id < want.size(); ++id) {
      EXPECT_NEAR(probabilities[id], want[id], 1e-5) << "id " << id;
    }
  }
}

}  // namespace
}  // namespace longview::models
