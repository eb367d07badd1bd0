// Builds safetensors files byte by byte, broken ones included, in a directory of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace longview::models {

// A directory that is removed with the object.
class TempDirectory {
 public:
  TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory();

  std::string Path(std::string_view name) const;
  // Writes a file and returns its path.
  std::string Write(std::string_view name, std::string_view content) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Length prefix + header + data; the length may lie.
std::string SafetensorsBytes(std::string_view header, std::string_view data);
std::string SafetensorsBytes(std::string_view header, std::string_view data, uint64_t length);

}  // namespace longview::models
