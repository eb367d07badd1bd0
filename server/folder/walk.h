// Lists the files of a folder that `longview search` would read (client/cli/search), within bounds
// that hold whatever the folder holds.
//
// Thread-safe: pure functions of the file system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace longview::server {

struct WalkLimits {
  size_t files = 0;          // Most files in the list.
  uint64_t file_bytes = 0;   // Size of the largest file that is listed.
  size_t entries = 100'000;  // Most entries looked at, in all folders together.
};

struct WalkedFiles {
  struct File {
    std::string path;  // Below the folder, with slashes.
    uint64_t bytes = 0;
  };
  std::vector<File> files;  // In path order.
  bool more = false;        // Whether there are files that the limits left out.
  bool unreadable = false;  // Whether a folder could not be listed.
};

// Left out are: names that begin with a dot; what .gitignore files in the folder or below it
// ignore; node_modules, __pycache__ and folders that say they were generated (CACHEDIR.TAG,
// CMakeCache.txt, pyvenv.cfg); links; what is no regular file.
WalkedFiles WalkFolder(const std::string& folder, const WalkLimits& limits);

}  // namespace longview::server
