// A Transformer-LS language model directory with random weights, for benchmarks that need a model
// of a published size.
#pragma once

#include <string>

namespace longview::bench {

// enwik8-large of Zhu et al. 2021.
struct TransformerLsShape {
  int layers = 30;
  int width = 512;
  int heads = 8;
  int intermediate = 2048;
  int vocab = 256;  // Bytes.
  int window = 512;
  int segment = 16;
  int rank = 1;
};

// Writes config.json and model.safetensors (fp32) into `directory`, which is made if needed.
void WriteRandomTransformerLs(const std::string& directory, const TransformerLsShape& shape);

}  // namespace longview::bench
