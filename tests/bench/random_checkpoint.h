// A model.safetensors of random fp32 tensors, for benchmarks that need a model of a real size.
#pragma once

#include <cstdint>
#include <functional>
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

// name.weight [out, in] and name.bias [out]; name.weight and name.bias [width] of a norm.
void AddRandomDense(std::vector<RandomTensor>& tensors, const std::string& name, int64_t out,
                    int64_t in);
void AddRandomNorm(std::vector<RandomTensor>& tensors, const std::string& name, int64_t width);

// Writes config.json and model.safetensors into `directory`, which is made if needed. The same
// tensors always get the same numbers. Aborts with a message on failure.
void WriteRandomModel(const std::string& directory, const nlohmann::json& config,
                      const std::vector<RandomTensor>& tensors);

// Writes model.safetensors with zeros in place of numbers, as a file without stored bytes.
void WriteZeroModel(const std::string& directory, const std::vector<RandomTensor>& tensors);

// The directory `folder`/longview-random-`name`, made by `write` (of its path) unless a run before
// left it there. An empty folder is the system's for temporary files.
std::string KeptModel(const std::string& folder, const std::string& name,
                      const std::function<void(const std::string&)>& write);

}  // namespace longview::bench
