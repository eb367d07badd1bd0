#include "tests/models/encoder/edge_frame.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

namespace longview::models {

TokenInput RandomIds(int count, uint32_t seed, int32_t first, int32_t end) {
  std::mt19937 random(seed);
  TokenInput tokens;
  for (int i = 0; i < count; ++i) {
    tokens.ids.push_back(first +
                         static_cast<int32_t>(random() % static_cast<uint32_t>(end - first)));
  }
  return tokens;
}

Request Classify(TokenInput tokens) {
  return TokenRequest(Task::kTextClassification, std::move(tokens), {"logits"});
}

std::vector<float> FirstTensor(const Model& model, const Request& request) {
  const Answer answer = RunAlone(model, request);
  const auto values = answer.tensors.at(0).floats();
  return {values.begin(), values.end()};
}

std::vector<float> Logits(const Model& model, TokenInput tokens) {
  return FirstTensor(model, Classify(std::move(tokens)));
}

std::vector<float> LastHiddenState(const Model& model, TokenInput tokens) {
  return FirstTensor(model,
                     TokenRequest(Task::kEmbedding, std::move(tokens), {"last_hidden_state"}));
}

double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  return LargestDifference(a, b);
}

void ExpectFinite(std::span<const float> values, const std::string& where) {
  for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << where;
}

void ExpectRefused(const Model& model, const Request& request, const std::string& part) {
  const auto item = model.Prepare(request);
  ASSERT_FALSE(item.ok()) << part;
  EXPECT_EQ(item.status().code(), absl::StatusCode::kInvalidArgument) << item.status();
  EXPECT_NE(item.status().message().find(part), std::string::npos) << item.status();
}

void ExpectPlainIdsOnly(const Model& model, int most, int32_t vocab) {
  ExpectRefused(model, Classify(RandomIds(most + 1, 1, 1, vocab)), std::to_string(most));
  ExpectRefused(model, Classify({{3, vocab}, {}, {}, {}}), "[0, " + std::to_string(vocab) + ")");
  Request globals = Classify(RandomIds(5, 1, 1, vocab));
  globals.global_positions = {0};
  ExpectRefused(model, globals, "no global attention");
  Request types = Classify(RandomIds(2, 1, 1, vocab));
  types.tokens->token_type_ids = {0, 0};
  ExpectRefused(model, types, "no token types");
  Request second = Classify(RandomIds(2, 1, 1, vocab));
  second.tokens_pair = RandomIds(2, 1, 1, vocab);
  ExpectRefused(model, second, "token_ids_pair");
  EXPECT_EQ(
      model.Prepare(TokenRequest(Task::kFillMask, RandomIds(5, 1, 1, vocab), {})).status().code(),
      absl::StatusCode::kUnimplemented);
}

void ExpectFewRowsHaveTheSameBits(const GoldenCase& golden, const std::string& pooling) {
  const auto model = golden.Load("fp32");
  for (int i = 0; i < golden.items(); ++i) {
    Request some = TokenRequest(Task::kEmbedding, golden.Tokens(i), {"embedding"});
    some.pooling = pooling;
    Request all = some;
    all.tensors = {"embedding", "last_hidden_state"};
    const Answer few = RunAlone(*model, some);
    ASSERT_EQ(few.tensors.size(), 1u);
    EXPECT_EQ(few.tensors[0].data, RunAlone(*model, all).tensors.at(0).data) << "item " << i;
  }
}

void ExpectOrderMatters(const Model& model, const Request& pair) {
  Request swapped = pair;
  std::swap(swapped.tokens, swapped.tokens_pair);
  EXPECT_NE(RunAlone(model, pair).tensors[0].data, RunAlone(model, swapped).tensors[0].data);
}

void ExpectRefusedByName(const GoldenCase& golden, const Broken& broken) {
  EditedModel edited{golden};
  broken.edit(edited);
  const auto model = edited.Load();
  ASSERT_FALSE(model.ok()) << broken.what;
  EXPECT_NE(model.status().message().find(broken.part), std::string::npos) << model.status();
  const Inspection inspection = InspectDirectory(edited.directory());
  EXPECT_FALSE(inspection.servable) << broken.what;
  EXPECT_NE(inspection.error.find(broken.part), std::string::npos) << inspection.error;
}

void ExpectExplained(const GoldenCase& golden, const std::string& part) {
  const Inspection inspection = InspectDirectory(golden.directory());
  EXPECT_TRUE(inspection.servable) << inspection.error;
  EXPECT_NE(inspection.report.find(part), std::string::npos) << inspection.report;
}

void ExpectLinearBytes(Model& model, int tokens, int32_t vocab) {
  ASSERT_TRUE(model.WarmUp().ok());
  const auto half = model.EstimateTokens(tokens / 2), full = model.EstimateTokens(tokens);
  ASSERT_TRUE(half.ok() && full.ok());
  EXPECT_LT(full->workspace_bytes, 2 * half->workspace_bytes);
  const auto item = model.Prepare(Classify(RandomIds(tokens, 9, 1, vocab)));
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ((*item)->cost().workspace_bytes, full->workspace_bytes);
  EXPECT_EQ((*item)->cost().multiply_adds, full->multiply_adds);
  EXPECT_GT(half->multiply_adds, 0);
  EXPECT_LT(full->multiply_adds, 2.5 * half->multiply_adds);
  EXPECT_FALSE(model.EstimateTokens(tokens + 1).ok());
}

}  // namespace longview::models
