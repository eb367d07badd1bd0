#include "tests/bench/random_longformer.h"

#include <cstdint>
#include <vector>

#include "tests/bench/random_checkpoint.h"

namespace longview::bench {
namespace {

std::vector<RandomTensor> TensorsOf(const LongformerShape& shape) {
  const int64_t width = shape.width;
  const std::string embeddings = "longformer.embeddings.";
  std::vector<RandomTensor> tensors = {
      {embeddings + "word_embeddings.weight", {shape.vocab, width}, 0, 0.05f},
      {embeddings + "position_embeddings.weight", {shape.positions, width}, 0, 0.05f},
      {embeddings + "token_type_embeddings.weight", {1, width}, 0, 0.05f}};
  AddRandomNorm(tensors, embeddings + "LayerNorm", width);
  for (int i = 0; i < shape.layers; ++i) {
    const std::string layer = "longformer.encoder.layer." + std::to_string(i) + ".";
    for (const char* name :
         {"query", "key", "value", "query_global", "key_global", "value_global"}) {
      AddRandomDense(tensors, layer + "attention.self." + name, width, width);
    }
    AddRandomDense(tensors, layer + "attention.output.dense", width, width);
    AddRandomNorm(tensors, layer + "attention.output.LayerNorm", width);
    AddRandomDense(tensors, layer + "intermediate.dense", shape.intermediate, width);
    AddRandomDense(tensors, layer + "output.dense", width, shape.intermediate);
    AddRandomNorm(tensors, layer + "output.LayerNorm", width);
  }
  AddRandomDense(tensors, "classifier.dense", width, width);
  AddRandomDense(tensors, "classifier.out_proj", 2, width);
  return tensors;
}

nlohmann::json ConfigOf(const LongformerShape& shape) {
  return {{"architectures", {"LongformerForSequenceClassification"}},
          {"model_type", "longformer"},
          {"attention_window", shape.window},
          {"hidden_size", shape.width},
          {"intermediate_size", shape.intermediate},
          {"layer_norm_eps", 1e-5},
          {"max_position_embeddings", shape.positions},
          {"num_attention_heads", shape.heads},
          {"num_hidden_layers", shape.layers},
          {"num_labels", 2},
          {"pad_token_id", 1},
          {"type_vocab_size", 1},
          {"vocab_size", shape.vocab}};
}

}  // namespace

void WriteRandomLongformer(const std::string& directory, const LongformerShape& shape) {
  WriteRandomModel(directory, ConfigOf(shape), TensorsOf(shape));
}

}  // namespace longview::bench
