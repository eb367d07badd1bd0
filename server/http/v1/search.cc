// The files of --search_folder, which the console's Search tab ranks.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/folder/walk.h"
#include "server/http/context.h"
#include "server/http/json/writer.h"
#include "server/http/uri.h"

namespace longview::server {
namespace {

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

absl::Status Off() {
  return MakeError(absl::StatusCode::kNotFound,
                   "no folder is served for searching: start the server with --search_folder=DIR",
                   {.reason = "NO_SEARCH_FOLDER"});
}

absl::StatusOr<HttpResponse> ListFiles(SearchFolder& folder) {
  ASSIGN_OR_RETURN(const SearchFolder::Listing listing, folder.List());
  std::string body = R"({"folder":)";
  AppendJsonString(folder.Name(), &body);
  absl::StrAppend(&body, R"(,"more":)", listing.more ? "true" : "false", R"(,"files":[)");
  for (const WalkedFiles::File& file : listing.files) {
    if (body.back() == '}') body += ",";
    body += R"({"path":)";
    AppendJsonString(file.path, &body);
    absl::StrAppend(&body, R"(,"bytes":)", file.bytes, "}");
  }
  return JsonResponse(body + "]}");
}

absl::StatusOr<HttpResponse> ReadFile(SearchFolder& folder, const std::string& query) {
  const auto fields = ParseQuery(query);
  const std::string path(fields ? FindField(*fields, "path") : "");
  if (path.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "path: name a file of the folder, ?path=src/main.cc",
                     {.reason = "INVALID_FIELD", .param = "path"});
  }
  ASSIGN_OR_RETURN(std::string text, folder.Read(path));
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  // Never a page, whatever a file holds.
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.body = std::move(text);
  return response;
}

// A route that reads files, on a thread that may wait for them.
template <typename Work>
HttpHandler Reading(HttpContext& context, std::shared_ptr<SearchFolder> folder, Work work) {
  return [&context, folder = std::move(folder), work](const ExchangePtr& exchange,
                                                      const PathParameters&) {
    if (folder == nullptr) return Refuse(context, exchange, Off());
    WriteSized(context, exchange, SearchFolder::kMostFileBytes, [&context, exchange, folder, work] {
      absl::StatusOr<HttpResponse> response = work(*folder, exchange->request());
      if (!response.ok()) return Refuse(context, exchange, response.status());
      Answer(context, exchange, *std::move(response));
    });
  };
}

}  // namespace

void AddSearch(HttpContext& context, Router& router) {
  std::shared_ptr<SearchFolder> folder;
  if (!context.search_folder.empty()) {
    folder = std::make_shared<SearchFolder>(context.search_folder);
  }
  router.Add(Verb::kGet, "/v1/search/files",
             Reading(context, folder,
                     [](SearchFolder& its, const HttpRequest&) { return ListFiles(its); }));
  router.Add(Verb::kGet, "/v1/search/file",
             Reading(context, folder, [](SearchFolder& its, const HttpRequest& request) {
               return ReadFile(its, request.query);
             }));
}

}  // namespace longview::server
