// Goldens of LED as requests.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/models/generation/generator_driver.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {

inline std::unique_ptr<Model> LoadLedCase(const GoldenCase& golden, const std::string& dtype,
                                          const std::string& model = "model") {
  absl::StatusOr<std::unique_ptr<Model>> loaded =
      LoadModel(golden.directory(model), {.dtype = dtype, .cache_bytes = 256 << 20});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : nullptr;
}

inline std::vector<int32_t> Narrow(const std::vector<int64_t>& ids) {
  return {ids.begin(), ids.end()};
}

// Every parameter of a recorded run as an option of its name.
inline GenerationOptions OptionsOf(const nlohmann::json& params) {
  GenerationOptions options;
  for (const auto& [name, value] : params.items()) {
    const absl::Status status = SetOption(options, name, value.dump());
    EXPECT_TRUE(status.ok()) << status;
  }
  return options;
}

inline Request DocumentRequest(const GoldenCase& golden, int item, GenerationOptions options) {
  Request request;
  request.task = Task::kText2TextGeneration;
  request.tokens = golden.Tokens(item);
  request.generation = std::move(options);
  return request;
}

// The answer to a given output: its `tensors`.
inline Request Forced(const GoldenCase& golden, int item, std::vector<std::string> tensors) {
  GenerationOptions options;
  options.max_new_tokens = 0;
  Request request = DocumentRequest(golden, item, options);
  request.decoder_tokens.emplace().ids =
      Narrow(golden.Integers("decoder_input_ids." + std::to_string(item)));
  request.tensors = std::move(tensors);
  return request;
}

// Cases of one pass that are there: the full set has one more.
inline std::vector<std::string> ForwardCases() {
  std::vector<std::string> names = GoldenCase::Names("led");
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("forward"); });
  return names;
}

}  // namespace longview::models
