#include "tests/bench/random_checkpoint.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace longview::bench {
namespace {

void Check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "cannot write %s\n", what.c_str());
  std::exit(1);
}

int64_t Elements(const RandomTensor& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  return count;
}

// Begins a file of the format: its header, whose tensors follow each other. Returns their bytes.
int64_t WriteHeader(const std::vector<RandomTensor>& tensors, std::ofstream& out) {
  nlohmann::json header = nlohmann::json::object();
  int64_t offset = 0;
  for (const RandomTensor& tensor : tensors) {
    const int64_t end = offset + 4 * Elements(tensor);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const auto size = static_cast<uint64_t>(text.size());
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << text;
  return offset;
}

}  // namespace

void AddRandomDense(std::vector<RandomTensor>& tensors, const std::string& name, int64_t out,
                    int64_t in) {
  tensors.push_back({name + ".weight", {out, in}, 0, 0.035f});
  tensors.push_back({name + ".bias", {out}, 0, 0.02f});
}

void AddRandomNorm(std::vector<RandomTensor>& tensors, const std::string& name, int64_t width) {
  tensors.push_back({name + ".weight", {width}, 1, 0.1f});
  tensors.push_back({name + ".bias", {width}, 0, 0.05f});
}

void WriteRandomModel(const std::string& directory, const nlohmann::json& config,
                      const std::vector<RandomTensor>& tensors) {
  std::filesystem::create_directories(directory);
  const std::string config_path = directory + "/config.json";
  std::ofstream config_file(config_path);
  config_file << config.dump(2) << "\n";
  Check(config_file.good(), config_path);
  const std::string path = directory + "/model.safetensors";
  std::ofstream out(path, std::ios::binary);
  WriteHeader(tensors, out);
  uint64_t state = 0x9E3779B97F4A7C15u;
  std::vector<float> values;
  for (const RandomTensor& tensor : tensors) {
    values.resize(static_cast<size_t>(Elements(tensor)));
    for (float& value : values) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // xorshift64
      const float unit = static_cast<float>(static_cast<int32_t>(state >> 32)) * 0x1p-31f;
      value = tensor.mean + tensor.spread * unit;
    }
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  out.close();
  Check(out.good(), path);
}

void WriteZeroModel(const std::string& directory, const std::vector<RandomTensor>& tensors) {
  const std::string path = directory + "/model.safetensors";
  std::ofstream out(path, std::ios::binary);
  const int64_t bytes = WriteHeader(tensors, out);
  const auto size = static_cast<uintmax_t>(out.tellp()) + static_cast<uintmax_t>(bytes);
  out.close();
  Check(out.good(), path);
  std::filesystem::resize_file(path, size);
}

std::string KeptModel(const std::string& folder, const std::string& name,
                      const std::function<void(const std::string&)>& write) {
  namespace fs = std::filesystem;
  const fs::path parent = folder.empty() ? fs::temp_directory_path() : fs::path(folder);
  const fs::path directory = parent / ("longview-random-" + name);
  if (!fs::exists(directory / "model.safetensors")) write(directory);
  return directory;
}

}  // namespace longview::bench
