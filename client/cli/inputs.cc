#include "client/cli/inputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/utf8.h"

namespace longview::client {

namespace {

namespace fs = std::filesystem;

absl::Status FileError(const std::error_code& error) {
  const std::string message = error.message();
  if (error == std::errc::no_such_file_or_directory) return absl::NotFoundError(message);
  if (error == std::errc::permission_denied) return absl::PermissionDeniedError(message);
  return absl::InvalidArgumentError(message);
}

bool IsHidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

void AppendDirectory(const std::string& directory, std::vector<Input>* inputs) {
  std::error_code error;
  std::vector<std::string> paths;
  fs::recursive_directory_iterator it(directory, error);
  while (!error && it != fs::recursive_directory_iterator()) {
    if (IsHidden(it->path())) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(error)) {
      paths.push_back(it->path().string());
    }
    error.clear();  // A dangling link is not a regular file; the walk goes on.
    it.increment(error);
  }
  std::sort(paths.begin(), paths.end());
  for (std::string& path : paths) inputs->push_back({std::move(path), absl::OkStatus()});
  if (error) inputs->push_back({directory, FileError(error)});
}

// Reads at most limit + 1 bytes: enough to know that there are too many.
std::string ReadUpTo(std::istream& stream, uint64_t limit) {
  std::string text;
  char block[64 << 10];
  while (text.size() <= limit && stream) {
    const uint64_t room = std::min<uint64_t>(sizeof(block), limit + 1 - text.size());
    stream.read(block, static_cast<std::streamsize>(room));
    text.append(block, static_cast<size_t>(stream.gcount()));
  }
  return text;
}

constexpr std::string_view kJpeg = "\xff\xd8\xff";
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
// A RIFF file: its size in bytes stands between the two.
constexpr std::string_view kRiff = "RIFF", kWebp = "WEBP";
constexpr size_t kWebpAt = 8;
constexpr size_t kMostNeeded = 12;

}  // namespace

std::vector<Input> ListInputs(const std::vector<std::string>& arguments) {
  std::vector<Input> inputs;
  for (const std::string& argument : arguments) {
    if (argument == "-") {
      inputs.push_back({argument, absl::OkStatus()});
      continue;
    }
    std::error_code error;
    const fs::file_status status = fs::status(argument, error);
    if (!fs::exists(status)) {
      if (!error) error = std::make_error_code(std::errc::no_such_file_or_directory);
      inputs.push_back({argument, FileError(error)});
    } else if (fs::is_directory(status)) {
      AppendDirectory(argument, &inputs);
    } else {
      inputs.push_back({argument, absl::OkStatus()});
    }
  }
  return inputs;
}

absl::StatusOr<std::string> ReadInput(const Input& input, const ReadOptions& options,
                                      std::istream& standard_input) {
  if (!input.status.ok()) return input.status;
  std::string text;
  if (input.path == "-") {
    text = ReadUpTo(standard_input, options.max_bytes);
  } else {
    errno = 0;
    std::ifstream file(input.path, std::ios::binary);
    if (!file) return FileError(std::error_code(errno, std::generic_category()));
    text = ReadUpTo(file, options.max_bytes);
  }
  if (text.size() > options.max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("larger than the limit of ", options.max_bytes, " bytes"));
  }
  if (options.binary) return text;
  const std::string format(PictureFormat(text));
  if (options.pictures && !format.empty()) return text;
  const std::optional<size_t> invalid = FirstInvalidUtf8(text);
  if (!invalid) return text;
  if (!format.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a picture (", format, "), not a text; classify and detect read pictures"));
  }
  if (options.lossy) return ReplaceInvalidUtf8(text);
  return absl::InvalidArgumentError(
      absl::StrCat("not UTF-8 at byte ", *invalid, "; --lossy replaces what is invalid"));
}

std::string_view PictureFormat(std::string_view content) {
  if (content.starts_with(kJpeg)) return "JPEG";
  if (content.starts_with(kPng)) return "PNG";
  const bool webp = content.size() >= kMostNeeded && content.starts_with(kRiff) &&
                    content.substr(kWebpAt).starts_with(kWebp);
  return webp ? "WebP" : "";
}

std::string_view PictureFormatOfFile(const std::string& path) {
  char bytes[kMostNeeded];
  std::ifstream file(path, std::ios::binary);
  file.read(bytes, sizeof bytes);
  return PictureFormat({bytes, static_cast<size_t>(file.gcount())});
}

}  // namespace longview::client
