#include "server/http/v1/search_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/errors.h"
#include "server/folder/walk.h"

namespace longview::server {
namespace {

constexpr size_t kLooksForBinary = 8192;  // Bytes at a file's beginning.

// Closes what it holds.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  void Become(int number) {
    if (number_ >= 0) close(number_);
    number_ = number;
  }

 private:
  int number_;
};

absl::Status NotThere(std::string_view path) {
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("no text file ", Quoted(path),
                                " in the folder; GET /v1/search/files lists those there are"),
                   {.reason = "NO_SUCH_FILE", .param = "path"});
}

// Up to `most` bytes of a regular file of at most kMostFileBytes. Each part of the path is opened
// by itself, so that none of them can be a link, not even one that was put there a moment ago.
absl::StatusOr<std::string> ReadBelow(const std::string& folder, const std::string& path,
                                      size_t most) {
  Descriptor at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  for (size_t i = 0; i < parts.size() && at.number() >= 0; ++i) {
    if (parts[i].empty() || parts[i] == "." || parts[i] == "..") return NotThere(path);
    // A pipe in a file's place is not waited for.
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK;
    at.Become(openat(at.number(), parts[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  }
  struct stat status = {};
  if (at.number() < 0 || fstat(at.number(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<uint64_t>(status.st_size) > SearchFolder::kMostFileBytes) {
    return NotThere(path);
  }
  std::string bytes(std::min(most, static_cast<size_t>(status.st_size)), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = read(at.number(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0) return NotThere(path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

absl::StatusOr<SearchFolder::Listing> SearchFolder::List() {
  const WalkedFiles walked = WalkFolder(path_, {.files = kMostFiles, .file_bytes = kMostFileBytes});
  Listing listing;
  listing.more = walked.more;
  uint64_t total = 0;
  for (const WalkedFiles::File& file : walked.files) {
    const absl::StatusOr<std::string> begin = ReadBelow(path_, file.path, kLooksForBinary);
    if (!begin.ok() || begin->empty() || begin->find('\0') != std::string::npos) continue;
    if (total + file.bytes > kMostBytes) {
      listing.more = true;
      continue;
    }
    total += file.bytes;
    listing.files.push_back(file);
  }
  if (listing.files.empty() && walked.unreadable) {
    return MakeError(absl::StatusCode::kUnavailable,
                     "the folder of --search_folder cannot be listed",
                     {.reason = "FOLDER_UNREADABLE"});
  }
  absl::MutexLock lock(&mutex_);
  listed_.clear();
  for (const WalkedFiles::File& file : listing.files) listed_.emplace(file.path, file.bytes);
  has_listed_ = true;
  return listing;
}

absl::StatusOr<std::string> SearchFolder::Read(const std::string& path) {
  bool first = false;
  {
    absl::MutexLock lock(&mutex_);
    first = !has_listed_;
  }
  if (first) {
    if (const auto listing = List(); !listing.ok()) return listing.status();
  }
  {
    absl::MutexLock lock(&mutex_);
    if (!listed_.contains(path)) return NotThere(path);
  }
  return ReadBelow(path_, path, kMostFileBytes);
}

std::string SearchFolder::Name() const {
  const std::filesystem::path path = std::filesystem::path(path_).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace longview::server
