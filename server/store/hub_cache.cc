#include "server/store/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longview::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kListed = 8;  // Revisions named in one message.

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A part of the hub's names. It begins with a letter, a digit or an underscore.
bool IsPart(std::string_view text) {
  const auto good = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text[0] != '.' && text[0] != '-' &&
         std::all_of(text.begin(), text.end(), good);
}

// Parts between slashes: "main", "refs/pr/7".
bool IsRevision(std::string_view text) {
  while (true) {
    const size_t slash = text.find('/');
    if (!IsPart(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

std::string FirstWord(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Revisions of which there is a snapshot, by their names in refs.
std::vector<std::string> Revisions(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder / "refs", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unreadable;
    if (!it->is_regular_file(unreadable)) continue;
    if (!IsDirectory(folder / "snapshots" / FirstWord(it->path()))) continue;
    names.push_back(it->path().lexically_relative(folder / "refs").string());
  }
  std::sort(names.begin(), names.end());
  if (names.size() > kListed) names.resize(kListed);
  return names;
}

absl::Status Missing(const HubModel& model, std::string_view problem) {
  const std::string revision =
      model.revision.empty() ? "" : absl::StrCat(" --revision ", model.revision);
  return absl::NotFoundError(absl::StrCat(model.id(), ": ", std::string(problem),
                                          "; to get it where there is a network: hf download ",
                                          model.id(), revision));
}

}  // namespace

bool IsDirectory(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool HasConfig(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path / "config.json", error) ||
         fs::is_regular_file(path / "modules.json", error);
}

std::optional<HubModel> ParseHubModel(std::string_view text) {
  HubModel model;
  const size_t at = text.find('@');
  if (at != std::string_view::npos) {
    model.revision = std::string(text.substr(at + 1));
    if (!IsRevision(model.revision)) return std::nullopt;
    text = text.substr(0, at);
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  model.organisation = std::string(text.substr(0, slash));
  model.name = std::string(text.substr(slash + 1));
  if (!IsPart(model.organisation) || !IsPart(model.name)) return std::nullopt;
  return model;
}

std::optional<HubModel> ParseHubFolder(std::string_view name) {
  constexpr std::string_view kPrefix = "models--";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const size_t between = name.find("--");
  if (between == std::string_view::npos) {
    if (!IsPart(name)) return std::nullopt;
    return HubModel{"", std::string(name), ""};
  }
  std::string id(name);
  return ParseHubModel(id.replace(between, 2, "/"));
}

std::string HubCacheFolder() {
  if (std::string cache = Variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = Variable("HF_HOME"); !home.empty()) {
    return (fs::path(home) / "hub").string();
  }
  const std::string caches = Variable("XDG_CACHE_HOME");
  const fs::path base = caches.empty() ? fs::path(Variable("HOME")) / ".cache" : fs::path(caches);
  return (base / "huggingface/hub").string();
}

absl::StatusOr<std::string> FindSnapshot(const HubModel& model, const std::string& cache) {
  const fs::path folder =
      fs::path(cache) / absl::StrCat("models--", model.organisation, "--", model.name);
  if (!IsDirectory(folder)) {
    return Missing(model, absl::StrCat("no such path, and not in the hub's cache ", cache));
  }
  return FindSnapshotIn(model, folder.string());
}

absl::StatusOr<std::string> FindSnapshotIn(const HubModel& model, const std::string& path) {
  const fs::path folder(path);
  const std::string revision = model.revision.empty() ? "main" : model.revision;
  fs::path snapshot = folder / "snapshots" / revision;
  const std::string commit = FirstWord(folder / "refs" / revision);
  if (!commit.empty()) snapshot = folder / "snapshots" / commit;
  if (!IsDirectory(snapshot)) {
    const std::vector<std::string> there = Revisions(folder);
    return Missing(model, absl::StrCat("the hub's cache has no revision ", revision, " of it",
                                       there.empty() ? "" : ", but ", absl::StrJoin(there, ", ")));
  }
  // Links of an interrupted download may lead nowhere.
  if (!HasConfig(snapshot)) {
    return Missing(model, absl::StrCat(snapshot.string(), " has no config.json"));
  }
  return snapshot.string();
}

}  // namespace longview::server
