// Small autoregressive Longformers, what they are asked, and patterns of their windows.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/generation/generator_driver.h"
#include "tests/models/golden/edited_model.h"

namespace longview::models {

inline constexpr int kPositions = 322;

// The small masked LM of the goldens as an autoregressive model, with random positions for longer
// texts.
class CausalModel : public EditedModel {
 public:
  explicit CausalModel(const nlohmann::json& dilation = nullptr, std::vector<int> windows = {})
      : EditedModel(GoldenCase("masked_lm")) {
    config["architectures"] = {"LongformerForCausalLM"};
    config["max_position_embeddings"] = kPositions;
    if (!dilation.is_null()) config["attention_dilation"] = dilation;
    if (!windows.empty()) config["attention_window"] = windows;
    config["eos_token_id"] = nullptr;
    config["bos_token_id"] = nullptr;
    EditedTensor& positions = tensors.at("longformer.embeddings.position_embeddings.weight");
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0, 0.5);
    positions.shape[0] = kPositions;
    positions.values.resize(static_cast<size_t>(kPositions * positions.shape[1]));
    for (float& value : positions.values) value = normal(random);
    std::erase_if(tensors, [](const auto& entry) {
      return entry.first.find("_global.") != std::string::npos;
    });
  }
};

inline std::vector<int32_t> RandomIds(size_t count, uint32_t seed) {
  std::minstd_rand random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(4 + random() % 250);
  return ids;
}

inline Request Scored(std::vector<int32_t> ids) {
  Request request = IdsRequest(std::move(ids), NewTokens(0));
  request.tensors = {"logits"};
  return request;
}

struct Pattern {
  const char* name;
  nlohmann::json dilation;
  std::vector<int> windows;
};

inline std::vector<Pattern> Patterns() {
  return {{"Plain", nullptr, {8, 4}},
          {"LongerThanABlock", nullptr, {200, 64}},
          {"PerLayer", {1, 3}, {8, 16}},
          {"PerHead", {{1, 2, 4, 8}, 1}, {16, 32}}};
}

}  // namespace longview::models
