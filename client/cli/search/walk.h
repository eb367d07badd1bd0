// The files of a repository that people wrote.
//
// Thread-safe: pure functions of the file system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace longview::client {

struct FoundFiles {
  std::vector<std::string> paths;       // In path order for each argument.
  std::vector<std::string> too_large;   // Left out.
  std::vector<std::string> unreadable;  // Directories.
};

// The files that the arguments name, those below directories in path order.
//
// Below a directory these are left out: names that begin with a dot; what .gitignore files at or
// below it ignore; node_modules, __pycache__ and folders that say they were generated
// (CACHEDIR.TAG, CMakeCache.txt, pyvenv.cfg); links to directories; files of more than
// max_file_bytes. An argument that is not a directory is among the paths whatever it is, also when
// it does not exist: reading it says why.
FoundFiles FindFiles(const std::vector<std::string>& arguments, int64_t max_file_bytes);

}  // namespace longview::client
