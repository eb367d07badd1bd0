// Frame of the edge tests of every family of text encoders: short ways to ask a model, and the
// checks that are the same whatever the layers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/models/golden/edited_model.h"

namespace longview::models {

// Ids in [first, end), the same for a seed.
TokenInput RandomIds(int count, uint32_t seed, int32_t first, int32_t end);

// Asks for the logits of `tokens` by text classification.
Request Classify(TokenInput tokens);

// The first tensor of the answer.
std::vector<float> FirstTensor(const Model& model, const Request& request);
std::vector<float> Logits(const Model& model, TokenInput tokens);
std::vector<float> LastHiddenState(const Model& model, TokenInput tokens);

// LargestDifference of vectors.
double Difference(const std::vector<float>& a, const std::vector<float>& b);

void ExpectFinite(std::span<const float> values, const std::string& where);

// Prepare refuses the request, and its message has `part`.
void ExpectRefused(const Model& model, const Request& request, const std::string& part);

// For a classifier of single documents without token types and global attention: what it refuses
// beside more than `most` tokens and ids that are not below `vocab`.
void ExpectPlainIdsOnly(const Model& model, int most, int32_t vocab);

// Documents that want only a few rows take another way through the last layer: an embedding has
// the same bits as beside all rows.
void ExpectFewRowsHaveTheSameBits(const GoldenCase& golden, const std::string& pooling);

// The two documents of `pair` the other way round give other logits.
void ExpectOrderMatters(const Model& model, const Request& pair);

// A model of `golden` that was broken by `edit` neither loads nor inspects as servable, and both
// messages have `part`.
struct Broken {
  const char* what;
  std::function<void(EditedModel&)> edit;
  const char* part;
};
void ExpectRefusedByName(const GoldenCase& golden, const Broken& broken);

// The directory can be served, and its explanation has `part`.
void ExpectExplained(const GoldenCase& golden, const std::string& part);

// An item of `tokens` ids costs the bytes that were estimated for so many, the half of them costs
// more than half of that (what does not grow stays), and one id more is refused. REQUIRES: `tokens`
// is the model's limit, ids below `vocab` are valid.
void ExpectLinearBytes(Model& model, int tokens, int32_t vocab);

}  // namespace longview::models
