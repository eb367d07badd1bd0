#include "tests/bench/random_transformer_ls.h"

#include <filesystem>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/bench/random_tensors.h"

namespace longview::bench {
namespace {

std::vector<RandomTensor> TensorsOf(const TransformerLsShape& shape) {
  const std::string prefix = "decoder.model.";
  const int64_t width = shape.width, heads = shape.heads, inner = shape.intermediate;
  std::vector<RandomTensor> tensors = {{prefix + "in_emb.weight", {shape.vocab, width}, 0, 0.05f},
                                       {prefix + "out_emb.bias", {shape.vocab}, 0, 0.05f}};
  for (int i = 0; i < shape.layers; ++i) {
    const std::string layer = prefix + "layers." + std::to_string(i) + ".";
    const auto weight = [&](const std::string& name, int64_t out, int64_t in) {
      tensors.push_back({layer + name + ".weight", {out, in}, 0, 0.05f});
    };
    const auto bias = [&](const std::string& name, int64_t size) {
      tensors.push_back({layer + name, {size}, 0, 0.05f});
    };
    for (const char* name :
         {"proj_query", "proj_key", "proj_val", "proj_out", "r_net", "r_net_chunk"}) {
      weight(std::string("attn.") + name, width, width);
    }
    bias("attn.r_net_chunk.bias", width);
    weight("attn.dconv_1", heads * shape.rank, width);
    bias("attn.dconv_1.bias", heads * shape.rank);
    tensors.push_back({layer + "attn.r_r_bias", {1, heads, 1, width / heads}, 0, 0.1f});
    tensors.push_back({layer + "attn.r_w_bias", {1, heads, 1, 1, width / heads}, 0, 0.1f});
    for (const char* name : {"attn.dual_ln_dproj", "attn.dual_ln_win", "norm1", "norm2"}) {
      tensors.push_back({layer + name + ".weight", {width}, 1, 0.1f});
      bias(std::string(name) + ".bias", width);
    }
    weight("ff.fc1", inner, width);
    bias("ff.fc1.bias", inner);
    weight("ff.fc2", width, inner);
    bias("ff.fc2.bias", width);
  }
  return tensors;
}

}  // namespace

void WriteRandomTransformerLs(const std::string& directory, const TransformerLsShape& shape) {
  std::filesystem::create_directories(directory);
  const nlohmann::json config = {{"architectures", {"TransformerLSForCausalLM"}},
                                 {"model_type", "transformer_ls"},
                                 {"vocab_size", shape.vocab},
                                 {"d_model", shape.width},
                                 {"n_head", shape.heads},
                                 {"d_inner", shape.intermediate},
                                 {"n_layer", shape.layers},
                                 {"window_len", shape.window},
                                 {"chunk_size", shape.segment},
                                 {"chunk_rank", shape.rank},
                                 {"pre_ln", true},
                                 {"use_gelu", true}};
  WriteText(directory + "/config.json", config.dump(2) + "\n");
  WriteRandomTensors(directory + "/model.safetensors", TensorsOf(shape));
}

}  // namespace longview::bench
