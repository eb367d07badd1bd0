#include "models/checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/checkpoint/safetensors_header.h"
#include "models/checkpoint/torch_file.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

namespace fs = std::filesystem;

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kPickled[] = "pytorch_model.bin";
constexpr char kPickledIndex[] = "pytorch_model.bin.index.json";

bool HoldsPickle(const std::string& path) {
  return path.ends_with(".bin") || path.ends_with(".pt") || path.ends_with(".pth");
}

// A symbolic link that leads nowhere counts: its error says more than "no weights".
bool Present(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found && !error;
}

bool IsPlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find_first_of("/\\") == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// Shard -> the tensors the index says it holds.
absl::StatusOr<std::map<std::string, std::set<std::string>>> ReadIndex(const std::string& path) {
  ASSIGN_OR_RETURN(nlohmann::json index, ReadJsonFile(path));
  JsonReader reader(index, path);
  reader.Object("weight_map");
  if (!reader.status().ok()) return reader.status();

  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string() || !IsPlainName(shard.get_ref<const std::string&>())) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": tensor \"", tensor,
                                                     "\": expected the name of a file in the same ",
                                                     "directory, found ", ShortJson(shard)));
    }
    shards[shard.get<std::string>()].insert(tensor);
  }
  if (shards.empty()) return absl::InvalidArgumentError(path + ": \"weight_map\" is empty");
  return shards;
}

std::optional<std::string> FirstNotIn(const std::set<std::string>& names,
                                      const std::set<std::string>& known) {
  for (const std::string& name : names) {
    if (!known.contains(name)) return name;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<TensorEntry>> ReadEntries(const MappedFile& file) {
  const uint64_t size = file.bytes().size();
  std::vector<std::byte> beginning(std::min(size, kSafetensorsLength));
  bool whole = file.Read(0, beginning);
  beginning.resize(std::min(size, SafetensorsHeaderEnd(beginning)));
  whole = whole && file.Read(0, beginning);
  if (!whole) {
    return absl::FailedPreconditionError(
        absl::StrCat(file.path(), ": was shortened while it was opened"));
  }
  return ParseSafetensorsHeader(beginning, size, file.path());
}

// Pickles that a training run leaves beside the weights.
bool IsTrainingState(const std::string& name) {
  return name == "training_args.bin" || name == "optimizer.pt" || name == "optimizer.bin" ||
         name == "scheduler.pt" || name == "rng_state.pth";
}

}  // namespace

int64_t TensorView::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

absl::Status TensorView::Read(uint64_t first, std::span<std::byte> out) const {
  if (file == nullptr) {
    std::copy_n(data + first, out.size(), out.data());
    return absl::OkStatus();
  }
  if (file->Read(offset + first, out)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(file->path(), ": tensor \"", name, "\": its ", bytes,
                   " bytes cannot be read; was the file shortened since it was opened?"));
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& path) {
  std::error_code error;
  Checkpoint checkpoint;
  absl::Status status;
  if (!fs::is_directory(path, error)) {
    status =
        path.ends_with(".json") ? checkpoint.AddIndex(path) : checkpoint.AddFile(path).status();
  } else if (const fs::path single = fs::path(path) / kSingle; Present(single)) {
    status = checkpoint.AddFile(single.string()).status();
  } else if (const fs::path index = fs::path(path) / kIndex; Present(index)) {
    status = checkpoint.AddIndex(index.string());
  } else if (const fs::path pickled = fs::path(path) / kPickled; Present(pickled)) {
    status = checkpoint.AddFile(pickled.string()).status();
  } else if (const fs::path index = fs::path(path) / kPickledIndex; Present(index)) {
    status = checkpoint.AddIndex(index.string());
  } else {
    status = NoWeightsError(path);
  }
  if (!status.ok()) return status;
  return checkpoint;
}

absl::StatusOr<std::set<std::string>> Checkpoint::AddFile(const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile opened, MappedFile::Open(path));
  files_.push_back(std::make_unique<const MappedFile>(std::move(opened)));
  const MappedFile& file = *files_.back();
  ASSIGN_OR_RETURN(auto views, HoldsPickle(path) ? PickledViews(file) : StoredViews(file));

  std::set<std::string> names;
  for (TensorView& view : views) {
    const std::string name = view.name;
    if (!tensors_.emplace(name, std::move(view)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor \"", name, "\" is in another shard as well"));
    }
    names.insert(name);
  }
  return names;
}

absl::StatusOr<std::vector<TensorView>> Checkpoint::StoredViews(const MappedFile& file) const {
  ASSIGN_OR_RETURN(auto entries, ReadEntries(file));
  std::vector<TensorView> views;
  views.reserve(entries.size());
  for (TensorEntry& entry : entries) {
    views.push_back({.name = std::move(entry.name),
                     .dtype = entry.dtype,
                     .shape = std::move(entry.shape),
                     .data = file.bytes().data() + entry.begin,
                     .bytes = entry.end - entry.begin,
                     .file = &file,
                     .offset = entry.begin});
  }
  return views;
}

absl::StatusOr<std::vector<TensorView>> Checkpoint::PickledViews(const MappedFile& file) {
  ASSIGN_OR_RETURN(auto entries, ReadTorchFile(file));
  std::vector<TensorView> views;
  for (TorchEntry& entry : entries) {
    TensorView view{
        .name = std::move(entry.name), .dtype = entry.dtype, .shape = std::move(entry.shape)};
    view.bytes = static_cast<size_t>(view.elements()) * DTypeBits(view.dtype) / 8;
    if (entry.copy.empty()) {
      view.data = file.bytes().data() + entry.begin;
      view.file = &file;
      view.offset = entry.begin;
    } else {
      copies_.push_back(std::make_unique<const std::vector<std::byte>>(std::move(entry.copy)));
      view.data = copies_.back()->data();
    }
    views.push_back(std::move(view));
  }
  return views;
}

absl::Status Checkpoint::AddIndex(const std::string& path) {
  ASSIGN_OR_RETURN(auto shards, ReadIndex(path));
  for (const auto& [shard, mapped] : shards) {
    const std::string file = (fs::path(path).parent_path() / shard).string();
    auto found = AddFile(file);
    if (!found.ok()) {
      return absl::Status(found.status().code(),
                          absl::StrCat(found.status().message(), " (listed in ", path, ")"));
    }
    if (std::optional<std::string> missing = FirstNotIn(mapped, *found)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": tensor \"", *missing, "\" is missing, but ", path, " lists it"));
    }
    if (std::optional<std::string> extra = FirstNotIn(*found, mapped)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": tensor \"", *extra, "\" is not in the weight_map of ", path));
    }
  }
  return absl::OkStatus();
}

const TensorView* Checkpoint::Find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += tensor.bytes;
  return total;
}

void Checkpoint::Release(const TensorView& tensor) const {
  if (tensor.file != nullptr) tensor.file->Release({tensor.data, tensor.bytes});
}

void Checkpoint::ReleaseAll() const {
  for (const auto& file : files_) file->Release(file->bytes());
}

absl::Status NoWeightsError(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> pickled;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string extension = entry.path().extension().string();
    const std::string name = entry.path().filename().string();
    if ((extension == ".bin" || extension == ".pt" || extension == ".pth") &&
        !IsTrainingState(name)) {
      pickled.push_back(name);
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat(directory, ": ", error.message()));
  if (pickled.empty()) {
    return absl::NotFoundError(absl::StrCat(directory, ": no weights: none of ", kSingle, ", ",
                                            kIndex, ", ", kPickled, " and ", kPickledIndex));
  }
  std::sort(pickled.begin(), pickled.end());
  return absl::FailedPreconditionError(
      absl::StrCat(directory, ": the weights are pickled (", pickled[0],
                   "), under a name that is not read. Convert them once: ",
                   "python3 models/convert/pickle_to_safetensors.py ", directory));
}

}  // namespace longview::models
