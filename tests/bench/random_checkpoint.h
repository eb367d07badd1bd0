// A model.safetensors of random fp32 tensors, for benchmarks that need a model of a real size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace longview::bench {

// Uniform in mean +- spread.
struct RandomTensor {
  std::string name;
  std::vector<int64_t> shape;
  float mean = 0, spread = 0;
};

// Writes config.json and model.safetensors into `directory`, which is made if needed. The same
// tensors always get the same numbers. Aborts with a message on failure.
void WriteRandomModel(const std::string& directory, const nlohmann::json& config,
                      const std::vector<RandomTensor>& tensors);

}  // namespace longview::bench
