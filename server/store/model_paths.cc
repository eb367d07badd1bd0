#include "server/store/model_paths.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/store/hub_cache.h"

namespace longview::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 128;
constexpr char kNoVersion[] = "1";

bool HasWeights(const fs::path& path) {
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const fs::path extension = it->path().extension();
    if (extension == ".safetensors" || extension == ".bin") return true;
  }
  return false;
}

// Sub-directories that are not hidden, sorted.
std::vector<fs::path> Subdirectories(const fs::path& path) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) continue;
    if (IsDirectory(it->path())) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<uint64_t> VersionOf(const fs::path& path) {
  const std::string name = path.filename().string();
  uint64_t version = 0;
  const bool digits = std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(name, &version)) return std::nullopt;
  return version;
}

// The sub-directory with a config.json whose name is the highest integer.
std::optional<fs::path> HighestVersion(const fs::path& path) {
  std::optional<fs::path> highest;
  for (const fs::path& sub : Subdirectories(path)) {
    const std::optional<uint64_t> version = VersionOf(sub);
    if (!version || !HasConfig(sub)) continue;
    if (!highest || *version >= *VersionOf(*highest)) highest = sub;
  }
  return highest;
}

// The folders of `path` that hold a model, as packages keep one.
std::vector<fs::path> ModelFolders(const fs::path& path) {
  std::vector<fs::path> found = Subdirectories(path);
  std::erase_if(found, [](const fs::path& sub) {
    return !HasConfig(sub) || !(HasWeights(sub) || IsDirectory(sub / "0_Transformer"));
  });
  return found;
}

// The last part of the path as it was given, so that a link lends its name.
std::string BaseName(const fs::path& path) {
  fs::path clean = path.lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  if (clean.filename() != "." && clean.filename() != "..") return clean.filename().string();
  std::error_code error;
  return fs::canonical(path, error).filename().string();
}

// The name of a model at `path`: org/name for a folder of the hub's cache.
std::string NameAt(const fs::path& path) {
  const std::string name = BaseName(path);
  const std::optional<HubModel> hub = ParseHubFolder(name);
  return hub ? hub->id() : name;
}

// `path` as a model called `name`, if it is one, or has one version or one folder that is.
std::optional<FoundModel> AsModel(const fs::path& path, const std::string& name) {
  if (HasConfig(path)) return FoundModel{name, kNoVersion, path.string(), ""};
  if (const std::optional<fs::path> highest = HighestVersion(path)) {
    return FoundModel{name, highest->filename().string(), highest->string(), ""};
  }
  if (const std::optional<HubModel> hub = ParseHubFolder(BaseName(path))) {
    const std::string cache = (path / "..").lexically_normal().string();
    const auto snapshot = FindSnapshot(*hub, cache);
    if (snapshot.ok()) return FoundModel{name, kNoVersion, *snapshot, hub->id()};
  }
  const std::vector<fs::path> folders = ModelFolders(path);
  if (folders.size() != 1) return std::nullopt;
  return FoundModel{name, kNoVersion, folders.front().string(), ""};
}

absl::Status PrefixedWith(std::string_view prefix, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(std::string(prefix), status.message()));
}

absl::Status CheckDirectory(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat("models: ", path, " does not exist"));
  }
  if (!IsDirectory(path)) {
    return absl::InvalidArgumentError(absl::StrCat("models: ", path, " is not a directory"));
  }
  return absl::OkStatus();
}

absl::Status NoModelIn(const std::string& path) {
  const std::vector<fs::path> folders = ModelFolders(path);
  const std::string why =
      folders.empty() ? "it has no config.json, nor do its folders"
                      : absl::StrCat("name one of its folders, such as ", folders.front().string());
  return absl::NotFoundError(absl::StrCat("models: no model in ", path, ": ", why));
}

// The hub's model that `path` names, if it is no path.
std::optional<HubModel> HubModelOf(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) return std::nullopt;
  return ParseHubModel(path);
}

// `name` "": org/name, as the model is called at the hub.
absl::Status FindAtHub(const std::string& name, const HubModel& wanted,
                       std::vector<FoundModel>& found) {
  const absl::StatusOr<std::string> snapshot = FindSnapshot(wanted, HubCacheFolder());
  if (!snapshot.ok()) return PrefixedWith("models: ", snapshot.status());
  found.push_back({name.empty() ? wanted.id() : name, kNoVersion, *snapshot, wanted.id()});
  return absl::OkStatus();
}

absl::Status FindNamed(const std::string& name, const std::string& path,
                       std::vector<FoundModel>& found) {
  if (const auto hub = HubModelOf(path)) return FindAtHub(name, *hub, found);
  if (absl::Status status = CheckDirectory(path); !status.ok()) return status;
  std::optional<FoundModel> model = AsModel(path, name);
  if (!model) return NoModelIn(path);
  found.push_back(*std::move(model));
  return absl::OkStatus();
}

absl::Status FindIn(const std::string& path, std::vector<FoundModel>& found,
                    std::vector<std::string>& all_skipped) {
  if (const auto hub = HubModelOf(path)) return FindAtHub("", *hub, found);
  if (absl::Status status = CheckDirectory(path); !status.ok()) return status;
  if (HasConfig(path) || ParseHubFolder(BaseName(path))) {
    return FindNamed(NameAt(path), path, found);
  }

  const std::vector<fs::path> subdirectories = Subdirectories(path);
  std::vector<FoundModel> models;
  std::vector<std::string> skipped;
  for (const fs::path& sub : subdirectories) {
    if (std::optional<FoundModel> model = AsModel(sub, NameAt(sub))) {
      models.push_back(*std::move(model));
    } else {
      skipped.push_back(sub.string());
    }
  }
  if (models.empty()) return NoModelIn(path);
  // <int>/ below the path itself: it is one model with versions, not models called 1 and 2.
  const bool versions = std::all_of(models.begin(), models.end(), [](const FoundModel& model) {
    return VersionOf(model.name).has_value() && model.version == kNoVersion &&
           fs::path(model.directory).filename() == model.name;
  });
  if (versions) return FindNamed(BaseName(path), path, found);
  all_skipped.insert(all_skipped.end(), skipped.begin(), skipped.end());
  found.insert(found.end(), models.begin(), models.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ResolveModelPath(const std::string& path) {
  if (const std::optional<HubModel> hub = HubModelOf(path)) {
    return FindSnapshot(*hub, HubCacheFolder());
  }
  const std::optional<FoundModel> model = AsModel(path, "");
  return model ? model->directory : path;
}

bool IsModelName(std::string_view name) {
  const auto is_part = [](std::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
    });
  };
  if (name.size() > kMaxNameBytes) return false;
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_part(name);
  // An organisation's begins with no dot: paths do.
  return name.front() != '.' && name[slash + 1] != '.' && is_part(name.substr(0, slash)) &&
         is_part(name.substr(slash + 1));
}

absl::StatusOr<std::vector<FoundModel>> FindModels(const std::vector<std::string>& paths,
                                                   Log& log) {
  std::vector<std::string> skipped;
  absl::StatusOr<std::vector<FoundModel>> found = FindModels(paths, skipped);
  for (const std::string& directory : skipped) {
    log.Info("no config.json, skipped", {{"directory", directory}});
  }
  return found;
}

absl::StatusOr<std::vector<FoundModel>> FindModels(const std::vector<std::string>& paths,
                                                   std::vector<std::string>& skipped) {
  std::vector<FoundModel> found;
  for (const std::string& path : paths) {
    const size_t equals = path.find('=');
    const bool named = equals != std::string::npos && IsModelName(path.substr(0, equals));
    absl::Status status = named ? FindNamed(path.substr(0, equals), path.substr(equals + 1), found)
                                : FindIn(path, found, skipped);
    if (!status.ok()) return status;
  }
  for (const FoundModel& model : found) {
    if (IsModelName(model.name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "models: ", model.directory, ": the name ", Quoted(model.name),
        " is not name or org/name of [A-Za-z0-9._-], at most ", kMaxNameBytes, " in all"));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const FoundModel& a, const FoundModel& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(found.begin(), found.end(),
                         [](const FoundModel& a, const FoundModel& b) { return a.name == b.name; });
  if (twice != found.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("models: the name ", Quoted(twice->name), " is given to ", twice->directory,
                     " and to ", std::next(twice)->directory, "; use name=path for one of them"));
  }
  return found;
}

}  // namespace longview::server
