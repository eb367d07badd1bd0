#include "tests/models/golden/edited_model.h"

#include "models/checkpoint/convert.h"
#include "models/config/json_reader.h"
#include "tests/models/checkpoint/safetensors_file.h"

namespace longview::models {

EditedModel::EditedModel(const GoldenCase& golden)
    : config(*ReadJsonFile(golden.directory() + "/config.json")) {
  const Checkpoint checkpoint = *Checkpoint::Open(golden.directory());
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    tensors[name] = {tensor.shape, ToFloat32(tensor)};
  }
}

void EditedModel::Cut(int64_t from, int64_t to) {
  for (auto& [name, tensor] : tensors) {
    int64_t values = 1;
    for (int64_t& side : tensor.shape) values *= side = side == from ? to : side;
    tensor.values.resize(static_cast<size_t>(values));
  }
}

const std::string& EditedModel::Write() const {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor.values.data()),
                tensor.values.size() * sizeof(float));
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  directory_.Write("config.json", config.dump());
  directory_.Write("model.safetensors", SafetensorsBytes(header.dump(), data));
  return directory_.path();
}

absl::StatusOr<std::unique_ptr<Model>> EditedModel::Load(const std::string& dtype) const {
  return LoadModel(Write(), {.dtype = dtype, .device = "cpu"});
}

}  // namespace longview::models
