#include "models/quantize/settings_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/config/serving_config.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"

namespace longview::models {
namespace {

constexpr size_t kMostSettingsBytes = size_t{1} << 20;
constexpr mode_t kUsualMode = 0644;

std::string PathIn(const std::string& directory) {
  return (std::filesystem::path(directory) / "longview.json").string();
}

absl::Status NotWritten(const std::string& path) {
  return absl::PermissionDeniedError(
      absl::StrCat(path, " cannot be written: ", std::strerror(errno)));
}

bool WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(file) == 0;
}

}  // namespace

absl::StatusOr<std::string> Int8Settings(const std::string& directory,
                                         std::vector<std::string> kept) {
  RETURN_IF_ERROR(ReadServingConfig(directory).status());
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  const absl::StatusOr<std::string> text = ReadFile(PathIn(directory), kMostSettingsBytes);
  if (text.ok()) settings = nlohmann::ordered_json::parse(*text);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  std::sort(kept.begin(), kept.end());
  settings["dtype"] = "int8";
  settings["int8_keep"] = std::move(kept);
  return settings.dump(2) + "\n";
}

absl::Status CheckWritable(const std::string& directory) {
  if (access(directory.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return NotWritten(PathIn(directory));
}

absl::Status WriteSettings(const std::string& directory, const std::string& text) {
  const std::string path = PathIn(directory);
  std::string name = path + ".XXXXXX";
  const int file = mkstemp(name.data());
  if (file < 0) return NotWritten(path);
  absl::Cleanup close_file = [file] { close(file); };
  absl::Cleanup remove_file = [&name] { unlink(name.c_str()); };
  struct stat old = {};
  const bool replaces = stat(path.c_str(), &old) == 0;
  if (fchmod(file, replaces ? old.st_mode & 0777 : kUsualMode) != 0 || !WriteAll(file, text) ||
      std::rename(name.c_str(), path.c_str()) != 0) {
    return NotWritten(path);
  }
  std::move(remove_file).Cancel();
  return absl::OkStatus();
}

}  // namespace longview::models
