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
#include "models/status_macros.h"
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

// `path` without what changes nothing: dots and a slash at the end.
fs::path Clean(const fs::path& path) {
  fs::path clean = path.lexically_normal();
  return clean.has_filename() ? clean : clean.parent_path();
}

// The model whose folder of the hub's cache `path` is, or lies in: its snapshots, or one of them.
std::optional<HubModel> HubModelAt(const fs::path& path) {
  constexpr std::string_view kSnapshots = "snapshots";
  fs::path folder = Clean(path);
  if (auto hub = ParseHubFolder(BaseName(folder))) return hub;
  if (folder.filename() != kSnapshots) folder = folder.parent_path();
  if (folder.filename() != kSnapshots) return std::nullopt;
  return ParseHubFolder(folder.parent_path().filename().string());
}

// The name of a model at `path`: org/name in the hub's cache.
std::string NameAt(const fs::path& path) {
  const std::optional<HubModel> hub = HubModelAt(path);
  return hub ? hub->id() : BaseName(path);
}

// The files of the model whose folder of the hub's cache, or the snapshots in it, `path` is; unset
// if it is neither.
std::optional<absl::StatusOr<std::string>> SnapshotAt(const fs::path& path) {
  const std::optional<HubModel> hub = HubModelAt(path);
  if (!hub) return std::nullopt;
  const fs::path clean = Clean(path);
  const fs::path folder = clean.filename() == "snapshots" ? clean.parent_path() : clean;
  if (!ParseHubFolder(BaseName(folder))) return std::nullopt;
  return FindSnapshotIn(*hub, folder.string());
}

// `path` as a model called `name`, if it is one, or has one version or one folder that is.
std::optional<FoundModel> AsModel(const fs::path& path, const std::string& name) {
  if (HasConfig(path)) {
    const std::optional<HubModel> hub = HubModelAt(path);
    return FoundModel{name, kNoVersion, path.string(), hub ? hub->id() : ""};
  }
  if (const std::optional<fs::path> highest = HighestVersion(path)) {
    return FoundModel{name, highest->filename().string(), highest->string(), ""};
  }
  if (const auto snapshot = SnapshotAt(path); snapshot && snapshot->ok()) {
    return FoundModel{name, kNoVersion, **snapshot, HubModelAt(path)->id()};
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
  if (const auto snapshot = SnapshotAt(path); snapshot && !snapshot->ok()) {
    return PrefixedWith("models: ", snapshot->status());
  }
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
  RETURN_IF_ERROR(CheckDirectory(path));
  std::optional<FoundModel> model = AsModel(path, name);
  if (!model) return NoModelIn(path);
  found.push_back(*std::move(model));
  return absl::OkStatus();
}

std::string NameRule() {
  return absl::StrCat("is not name or org/name of [A-Za-z0-9._-], at most ", kMaxNameBytes,
                      " in all");
}

// Why a directory in a folder of models is none; unset if it was never meant as one.
std::optional<SkippedDirectory> WhySkipped(const fs::path& path) {
  const auto skipped = [&path](std::string reason) {
    return SkippedDirectory{path.string(), std::move(reason)};
  };
  if (const auto snapshot = SnapshotAt(path); snapshot && !snapshot->ok()) {
    return skipped(std::string(snapshot->status().message()));
  }
  if (ModelFolders(path).size() > 1) return skipped("several of its folders are models");
  if (HasWeights(path)) return skipped("no config.json");
  return std::nullopt;
}

absl::Status RefusedName(const SkippedDirectory& skipped) {
  return absl::InvalidArgumentError(
      absl::StrCat("models: ", skipped.directory, ": ", skipped.reason));
}

absl::Status FindIn(const std::string& path, std::vector<FoundModel>& found,
                    std::vector<SkippedDirectory>& all_skipped) {
  if (const auto hub = HubModelOf(path)) return FindAtHub("", *hub, found);
  RETURN_IF_ERROR(CheckDirectory(path));
  if (HasConfig(path) || SnapshotAt(path)) {
    return FindNamed(NameAt(path), path, found);
  }

  const std::vector<fs::path> subdirectories = Subdirectories(path);
  std::vector<FoundModel> models;
  std::vector<SkippedDirectory> skipped;
  for (const fs::path& sub : subdirectories) {
    std::optional<FoundModel> model = AsModel(sub, NameAt(sub));
    if (!model) {
      if (auto why = WhySkipped(sub)) skipped.push_back(*std::move(why));
    } else if (!IsModelName(model->name)) {
      const std::string reason = absl::StrCat("the name ", Quoted(model->name), " ", NameRule());
      skipped.push_back({sub.string(), reason, /*broken=*/true});
    } else {
      model->named = false;
      models.push_back(*std::move(model));
    }
  }
  if (models.empty()) {
    for (const SkippedDirectory& each : skipped) {
      if (each.broken) return RefusedName(each);
    }
    return NoModelIn(path);
  }
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
  if (model) return model->directory;
  if (const auto snapshot = SnapshotAt(path)) return *snapshot;
  return path;
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
                                                   bool strict, Log& log) {
  std::vector<SkippedDirectory> skipped;
  absl::StatusOr<std::vector<FoundModel>> found = FindModels(paths, skipped);
  for (const SkippedDirectory& each : skipped) {
    if (strict && each.broken && found.ok()) found = RefusedName(each);
    log.Warning("directory skipped", {{"directory", each.directory}, {"reason", each.reason}});
  }
  return found;
}

absl::StatusOr<std::vector<FoundModel>> FindModels(const std::vector<std::string>& paths,
                                                   std::vector<SkippedDirectory>& skipped) {
  std::vector<FoundModel> found;
  for (const std::string& path : paths) {
    const size_t equals = path.find('=');
    const bool named = equals != std::string::npos && IsModelName(path.substr(0, equals));
    RETURN_IF_ERROR(named ? FindNamed(path.substr(0, equals), path.substr(equals + 1), found)
                          : FindIn(path, found, skipped));
  }
  for (const FoundModel& model : found) {
    if (IsModelName(model.name)) continue;
    return RefusedName(
        {model.directory, absl::StrCat("the name ", Quoted(model.name), " ", NameRule())});
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
