// A Longformer directory with random weights, for benchmarks that need a model of a real size.
#pragma once

#include <string>

namespace longview::bench {

struct LongformerShape {
  int layers = 12;
  int width = 768;
  int heads = 12;
  int intermediate = 3072;
  int vocab = 50265;
  int positions = 4098;
  int window = 512;  // Two-sided, as in config.json.
};

// Writes config.json and model.safetensors (fp32, longformer-base-4096's names, a classifier with
// two labels) into `directory`, which is made if needed. Aborts with a message on failure.
void WriteRandomLongformer(const std::string& directory, const LongformerShape& shape);

}  // namespace longview::bench
