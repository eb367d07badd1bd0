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
    path_ = name;
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(std::string_view relative) const {
    return (std::filesystem::path(path_) / relative).string();
  }

  // Writes a file, with the folders on the way, and returns its path.
  std::string Write(std::string_view relative, std::string_view content) const {
    const std::filesystem::path file = Path(relative);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file.string();
  }

 private:
  std::string path_;
};

}  // namespace longview::testing
