#include "tests/models/checkpoint/safetensors_file.h"

#include <cstdlib>
#include <fstream>

namespace longview::models {

TempDirectory::TempDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "longview-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

TempDirectory::~TempDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string TempDirectory::Path(std::string_view name) const {
  return (std::filesystem::path(path_) / name).string();
}

std::string TempDirectory::Write(std::string_view name, std::string_view content) const {
  const std::filesystem::path file = Path(name);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
  return file.string();
}

std::string SafetensorsBytes(std::string_view header, std::string_view data) {
  return SafetensorsBytes(header, data, header.size());
}

std::string SafetensorsBytes(std::string_view header, std::string_view data, uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(length >> (8 * i) & 0xff));
  bytes.append(header).append(data);
  return bytes;
}

}  // namespace longview::models
