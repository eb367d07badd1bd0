// The text files of one folder, for clients to search; nothing is ever written there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/folder/walk.h"

namespace longview::server {

// Thread-safe. Every call reads the file system and may take long.
class SearchFolder {
 public:
  static constexpr size_t kMostFiles = 2000;
  static constexpr uint64_t kMostFileBytes = uint64_t{1} << 20;
  static constexpr uint64_t kMostBytes = uint64_t{16} << 20;  // All listed files together.

  explicit SearchFolder(std::string path) : path_(std::move(path)) {}

  struct Listing {
    std::vector<WalkedFiles::File> files;  // By path.
    bool more = false;                     // Whether some did not fit the limits above.
  };
  // The files that `longview search` would read (server/folder/walk.h), without binary ones and
  // without links. UNAVAILABLE if the folder cannot be listed.
  absl::StatusOr<Listing> List();

  // The bytes of a file of the last listing; there is one at first. NOT_FOUND for all other paths,
  // and for what is no file of at most kMostFileBytes any more. Follows no links.
  absl::StatusOr<std::string> Read(const std::string& path);

  // The folder's own name.
  std::string Name() const;

 private:
  const std::string path_;
  absl::Mutex mutex_;
  // The paths that may be read.
  absl::flat_hash_map<std::string, uint64_t> listed_ ABSL_GUARDED_BY(mutex_);
  bool has_listed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace longview::server
