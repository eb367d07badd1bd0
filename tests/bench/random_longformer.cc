#include "tests/bench/random_longformer.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace longview::bench {
namespace {

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  float mean, spread;  // Uniform in mean +- spread.
};

void AddDense(std::vector<Tensor>& tensors, const std::string& name, int64_t out, int64_t in) {
  tensors.push_back({name + ".weight", {out, in}, 0, 0.035f});
  tensors.push_back({name + ".bias", {out}, 0, 0.02f});
}

void AddNorm(std::vector<Tensor>& tensors, const std::string& name, int64_t width) {
  tensors.push_back({name + ".weight", {width}, 1, 0.1f});
  tensors.push_back({name + ".bias", {width}, 0, 0.05f});
}

std::vector<Tensor> TensorsOf(const LongformerShape& shape) {
  const int64_t width = shape.width;
  const std::string embeddings = "longformer.embeddings.";
  std::vector<Tensor> tensors = {
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

void Check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "cannot write %s\n", what.c_str());
  std::exit(1);
}

void WriteConfig(const std::string& path, const LongformerShape& shape) {
  const nlohmann::json config = {{"architectures", {"LongformerForSequenceClassification"}},
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
  std::ofstream out(path);
  out << config.dump(2) << "\n";
  Check(out.good(), path);
}

}  // namespace

void WriteRandomLongformer(const std::string& directory, const LongformerShape& shape) {
  std::filesystem::create_directories(directory);
  WriteConfig(directory + "/config.json", shape);
  const std::vector<Tensor> tensors = TensorsOf(shape);
  nlohmann::json header = nlohmann::json::object();
  int64_t offset = 0;
  std::vector<int64_t> counts;
  for (const Tensor& tensor : tensors) {
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    counts.push_back(count);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + 4 * count}}};
    offset += 4 * count;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const auto size = static_cast<uint64_t>(text.size());
  const std::string path = directory + "/model.safetensors";
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << text;
  uint64_t state = 0x9E3779B97F4A7C15u;
  std::vector<float> values;
  for (size_t i = 0; i < tensors.size(); ++i) {
    values.resize(static_cast<size_t>(counts[i]));
    for (float& value : values) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // xorshift64
      const float unit = static_cast<float>(static_cast<int32_t>(state >> 32)) * 0x1p-31f;
      value = tensors[i].mean + tensors[i].spread * unit;
    }
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  out.close();
  Check(out.good(), path);
}

}  // namespace longview::bench
