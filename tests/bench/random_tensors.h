// Files of model directories with random weights, for benchmarks that need a model of a real size.
// Failures end the program with a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace longview::bench {

struct RandomTensor {
  std::string name;
  std::vector<int64_t> shape;
  float mean, spread;  // Uniform in mean +- spread.
};

// The same values for the same tensors every time, fp32.
void WriteRandomTensors(const std::string& path, const std::vector<RandomTensor>& tensors);

void WriteText(const std::string& path, std::string_view text);

}  // namespace longview::bench
