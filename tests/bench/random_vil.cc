#include "tests/bench/random_vil.h"

#include <cstdint>

#include "tests/bench/random_checkpoint.h"

namespace longview::bench {
namespace {

constexpr int64_t kChunk = 7;
constexpr int kClasses = 1000;

int Globals(size_t stage, size_t stages) { return stage + 1 < stages ? 1 : 0; }
int Patch(size_t stage) { return stage == 0 ? 4 : 2; }

std::string ArchOf(const std::vector<VilStageShape>& stages) {
  std::string arch;
  for (size_t s = 0; s < stages.size(); ++s) {
    const auto add = [&](char key, int value) {
      arch += (arch.empty() || arch.back() == '_' ? "" : ",") + std::string(1, key) +
              std::to_string(value);
    };
    if (s > 0) arch += '_';
    add('l', static_cast<int>(s) + 1);
    add('h', stages[s].heads);
    add('d', stages[s].width);
    add('n', stages[s].blocks);
    add('s', 1);
    add('g', Globals(s, stages.size()));
    add('p', Patch(s));
    add('f', kChunk);
    add('a', 0);
  }
  return arch;
}

void AddBlock(std::vector<RandomTensor>& tensors, const std::string& stage, int number,
              const VilStageShape& shape, int globals) {
  const int64_t d = shape.width, heads = shape.heads;
  const std::string attention = stage + std::to_string(2 * number + 1) + ".";
  const std::string mlp = stage + std::to_string(2 * number + 2) + ".";
  AddRandomNorm(tensors, attention + "norm", d);
  AddRandomDense(tensors, attention + "attn.query", d, d);
  AddRandomDense(tensors, attention + "attn.kv", 2 * d, d);
  AddRandomDense(tensors, attention + "attn.proj", d, d);
  const int64_t table = (4 * kChunk - 1) * (4 * kChunk - 1);
  tensors.push_back(
      {attention + "attn.local_relative_position_bias_table", {table, heads}, 0, 0.02f});
  if (globals > 0) {
    tensors.push_back(
        {attention + "attn.g2l_relative_position_bias", {2, heads, globals}, 0, 0.02f});
    tensors.push_back(
        {attention + "attn.g2g_relative_position_bias", {heads, globals, globals}, 0, 0.02f});
  }
  AddRandomNorm(tensors, mlp + "norm", d);
  AddRandomDense(tensors, mlp + "mlp.fc1", 4 * d, d);
  AddRandomDense(tensors, mlp + "mlp.fc2", d, 4 * d);
}

}  // namespace

void WriteRandomVil(const std::string& directory, const std::vector<VilStageShape>& stages) {
  std::vector<RandomTensor> tensors;
  int64_t channels = 3;
  for (size_t s = 0; s < stages.size(); ++s) {
    const std::string stage = "layer" + std::to_string(s + 1) + ".";
    const int64_t d = stages[s].width, p = Patch(s);
    const int globals = Globals(s, stages.size());
    tensors.push_back({stage + "0.proj.weight", {d, channels, p, p}, 0, 0.1f});
    tensors.push_back({stage + "0.proj.bias", {d}, 0, 0.02f});
    AddRandomNorm(tensors, stage + "0.norm_embed", d);
    if (globals > 0) tensors.push_back({stage + "0.cls_token", {1, globals, d}, 0, 0.02f});
    for (int b = 0; b < stages[s].blocks; ++b) AddBlock(tensors, stage, b, stages[s], globals);
    channels = d;
  }
  AddRandomNorm(tensors, "norm", channels);
  AddRandomDense(tensors, "head", kClasses, channels);
  WriteRandomModel(directory,
                   {{"model_type", "vil"},
                    {"architectures", {"ViLForImageClassification"}},
                    {"arch", ArchOf(stages)},
                    {"image_size", 224},
                    {"num_labels", kClasses}},
                   tensors);
}

}  // namespace longview::bench
