// A directory that is deleted with its contents at the end of its scope.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace longview::testing {

class TempDirectory {
 public:
  TempDirectory() {
    // mkdtemp replaces the last six characters.
    std::string name = (std::filesystem::temp_directory_path() / "longview-").string();
    name += std::string(6, 'X');
    if (mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  std::string Path(std::string_view relative) const { return (root_ / relative).string(); }

  // Writes a file, with the folders on the way.
  void Write(std::string_view relative, std::string_view content) const {
    const std::filesystem::path path = root_ / relative;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace longview::testing
