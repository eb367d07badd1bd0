#include "tests/bench/random_longformer.h"

#include <cstdint>
#include <vector>

#include "tests/bench/random_checkpoint.h"

namespace longview::bench {
namespace {

void AddDense(std::vector<RandomTensor>& tensors, const std::string& name, int64_t out,
              int64_t in) {
  tensors.push_back({name + ".weight", {out, in}, 0, 0.035f});
  tensors.push_back({name + ".bias", {out}, 0, 0.02f});
}

void AddNorm(std::vector<RandomTensor>& tensors, const std::string& name, int64_t width) {
  tensors.push_back({name + ".weight", {width}, 1, 0.1f});
  tensors.push_back({name + ".bias", {width}, 0, 0.05f});
}

std::vector<RandomTensor> TensorsOf(const LongformerShape& shape) {
  const int64_t width = shape.width;
  const std::string embeddings = "longformer.embeddings.";
  std::vector<RandomTensor> tensors = {
      {embeddings + "word_embeddings.weight", {shape.vocab, width}, 0, 0.05f},
      {embeddings + "position_embeddings.weight", {shape.positions, width}, 0, 0.05f},
      {embeddings + "token_type_embeddings.weight", {1, width}, 0, 0.05f}};
  AddNorm(tensors, embeddings + "LayerNorm", width);
  for (int i = 0; i < shape.layers; ++i) {
    const std::string layer = "longformer.encoder.layer." + std::to_string(i) + ".";
    for (const char* name :
         {"query", "key", "value", "query_global", "key_global", "value_global"}) {
      AddDense(tensors, layer + "attention.self." + name, width, width);
    }
    AddDense(tensors, layer + "attention.output.dense", width, width);
    AddNorm(tensors, layer + "attention.output.LayerNorm", width);
    AddDense(tensors, layer + "intermediate.dense", shape.intermediate, width);
    AddDense(tensors, layer + "output.dense", width, shape.intermediate);
    AddNorm(tensors, layer + "output.LayerNorm", width);
  }
  AddDense(tensors, "classifier.dense", width, width);
  AddDense(tensors, "classifier.out_proj", 2, width);
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
