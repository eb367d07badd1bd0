#include "tests/bench/random_lm.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "tests/bench/random_checkpoint.h"
#include "tests/support/owning_lm.h"

namespace longview::bench {
namespace {

constexpr int kHeads = 8, kIntermediate = 2048, kVocab = 208;

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

void AddLayer(int index, std::vector<RandomTensor>& tensors) {
  const std::string layer = "decoder.model.layers." + std::to_string(index) + ".";
  const std::string attention = layer + "attn.";
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, float mean,
                       float spread) {
    tensors.push_back({name, std::move(shape), mean, spread});
  };
  const auto add_norm = [&](const std::string& name) {
    add(name + ".weight", {kLmWidth}, 1, 0.1f);
    add(name + ".bias", {kLmWidth}, 0, 0.05f);
  };
  for (const char* name : {"proj_query", "proj_key", "proj_val", "proj_out", "r_net"}) {
    add(attention + name + ".weight", {kLmWidth, kLmWidth}, 0, 0.07f);
  }
  add(attention + "dconv_1.weight", {kHeads, kLmWidth}, 0, 0.07f);
  add(attention + "dconv_1.bias", {kHeads}, 0, 0.07f);
  add(attention + "r_r_bias", {1, kHeads, 1, kLmWidth / kHeads}, 0, 0.2f);
  add(attention + "r_w_bias", {1, kHeads, 1, 1, kLmWidth / kHeads}, 0, 0.2f);
  add(attention + "r_net_chunk.weight", {kLmWidth, kLmWidth}, 0, 0.07f);
  add(attention + "r_net_chunk.bias", {kLmWidth}, 0, 0.07f);
  add_norm(attention + "dual_ln_dproj");
  add_norm(attention + "dual_ln_win");
  add_norm(layer + "norm1");
  add_norm(layer + "norm2");
  add(layer + "ff.fc1.weight", {kIntermediate, kLmWidth}, 0, 0.07f);
  add(layer + "ff.fc1.bias", {kIntermediate}, 0, 0.07f);
  add(layer + "ff.fc2.weight", {kLmWidth, kIntermediate}, 0, 0.04f);
  add(layer + "ff.fc2.bias", {kLmWidth}, 0, 0.07f);
}

models::LsLmConfig ReadConfig(const std::string& directory) {
  const nlohmann::json config = nlohmann::json::parse(std::ifstream(directory + "/config.json"));
  return OrDie(models::ParseLsLmConfig(config, models::CommonConfig(), directory));
}

}  // namespace

void WriteRandomLm(const std::string& directory, int layers) {
  // The vocabulary is too small for bytes; ids are all that decoding needs.
  const nlohmann::json config = {{"model_type", "transformer_ls"},
                                 {"architectures", {"TransformerLSForCausalLM"}},
                                 {"vocab_size", kVocab},
                                 {"d_model", kLmWidth},
                                 {"n_head", kHeads},
                                 {"d_inner", kIntermediate},
                                 {"n_layer", layers},
                                 {"window_len", kLmWindow},
                                 {"chunk_size", kLmSegment},
                                 {"chunk_rank", 1},
                                 {"pre_ln", true},
                                 {"use_gelu", true}};
  const std::string model = "decoder.model.";
  std::vector<RandomTensor> tensors = {{model + "in_emb.weight", {kVocab, kLmWidth}, 0, 0.1f},
                                       {model + "out_emb.bias", {kVocab}, 0, 0.1f}};
  for (int i = 0; i < layers; ++i) AddLayer(i, tensors);
  WriteRandomModel(directory, config, tensors);
}

namespace {

absl::StatusOr<std::unique_ptr<models::ForwardDecoder>> Load(
    const std::string& directory, models::WeightFormat format,
    const models::ForwardDecoder::Limits& limits, std::unique_ptr<models::Device> device) {
  return models::ForwardDecoder::Create(
      std::make_unique<models::OwningLm>(ReadConfig(directory),
                                         OrDie(models::Checkpoint::Open(directory)), directory,
                                         limits.max_tokens),
      directory, format, limits, std::move(device));
}

}  // namespace

std::unique_ptr<models::ForwardDecoder> LoadLm(const std::string& directory,
                                               models::WeightFormat format, int max_tokens,
                                               double cache_bytes) {
  return OrDie(Load(directory, format, {max_tokens, cache_bytes}, nullptr));
}

std::unique_ptr<models::ForwardDecoder> LoadLmOn(std::unique_ptr<models::Device> device,
                                                 const std::string& directory,
                                                 models::Compute compute, int max_tokens,
                                                 double cache_bytes, std::string* reason) {
  auto decoder = Load(directory, compute, {max_tokens, cache_bytes}, std::move(device));
  if (!absl::IsResourceExhausted(decoder.status())) return OrDie(std::move(decoder));
  *reason = std::string(decoder.status().message());
  return nullptr;
}

}  // namespace longview::bench
