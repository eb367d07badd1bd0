// Models in the cache of HuggingFace's hub on this machine, as `hf download` leaves them. Nothing
// is downloaded:
//
//   <cache>/models--<org>--<name>/refs/<revision>      holds a commit
//   <cache>/models--<org>--<name>/snapshots/<commit>/  the files, as links into blobs/
//
// Thread-safe: pure functions of the disk and the environment.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace longview::server {

// False also where the path cannot be read.
bool IsDirectory(const std::filesystem::path& path);

// Whether `path` is a model's directory. Those of sentence-transformers may keep config.json with
// their Transformer and have only modules.json.
bool HasConfig(const std::filesystem::path& path);

struct HubModel {
  std::string organisation;  // "" for the hub's oldest models, which have none.
  std::string name;
  std::string revision;  // A branch, a tag or a commit; "" = main.

  std::string id() const { return organisation.empty() ? name : organisation + "/" + name; }
};

// org/name or org/name@revision; unset for what is neither, such as an absolute path.
std::optional<HubModel> ParseHubModel(std::string_view text);

// The model of a folder of the cache, by its name models--org--name or models--name; unset for
// others.
std::optional<HubModel> ParseHubFolder(std::string_view name);

// HF_HUB_CACHE, else hub in HF_HOME, else ~/.cache/huggingface/hub (or below XDG_CACHE_HOME).
std::string HubCacheFolder();

// The directory of the model's files. NOT_FOUND says what is there instead and how to download it.
absl::StatusOr<std::string> FindSnapshot(const HubModel& model, const std::string& cache);

// FindSnapshot in the model's own folder of a cache.
absl::StatusOr<std::string> FindSnapshotIn(const HubModel& model, const std::string& folder);

}  // namespace longview::server
