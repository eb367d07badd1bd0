// Finds the model directories that --models names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/log/log.h"

namespace longview::server {

// A directory with a config.json or modules.json.
struct FoundModel {
  std::string name;     // A name or org/name of [A-Za-z0-9._-], at most 128.
  std::string version;  // The name of its <int> directory, else "1".
  std::string directory;
  std::string hub_name;  // "org/name" where it was found in the hub's cache: requests may say it.
  bool named = true;     // By its own path; else it was found in a folder of models.
};

// A directory of a folder of models that is left out.
struct SkippedDirectory {
  std::string directory;
  std::string reason;
  bool broken = false;  // Meant as a model, and cannot be one.
};

// Each of `paths` is a model directory (its name is the model's), a directory of such
// (<name>/ or <name>/<int>/, where the highest integer counts), or name=path of a model
// directory, with or without <int>/, or of one whose only folder with a model that is; name may be
// org/name. Symbolic links are followed. Sorted by name. Where no such path exists, org/name or
// org/name@revision is a model of the hub that this machine's cache holds (hub_cache.h), called
// org/name unless another name stands before it, and so is one of a folder models--org--name or of
// the snapshots in it.
//
// Directories of a folder of models that have weights and no config.json, are a download that is
// not complete, or have a name that does not match are skipped with a line in the log; those with
// neither configuration nor weights are no models, and passed by. NOT_FOUND or INVALID_ARGUMENT,
// with the path: a path that is missing or holds no model, a name that was given and does not
// match, a name that two directories have.
//
// `strict`: a name that does not match is an error wherever the directory was found.
absl::StatusOr<std::vector<FoundModel>> FindModels(const std::vector<std::string>& paths,
                                                   bool strict, Log& log);

// FindModels without a log and never strict; `skipped` gets the directories that were left out.
absl::StatusOr<std::vector<FoundModel>> FindModels(const std::vector<std::string>& paths,
                                                   std::vector<SkippedDirectory>& skipped);

// The model's directory at `path` if it exists, else that of the hub's model that it names.
// NOT_FOUND with the command that downloads it; for a folder of the hub's cache, with what it
// lacks.
absl::StatusOr<std::string> ResolveModelPath(const std::string& path);

bool IsModelName(std::string_view name);

}  // namespace longview::server
