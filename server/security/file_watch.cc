#include "server/security/file_watch.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/scheduler/thread_loop.h"

namespace longview::server {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const auto failed = [&path](std::string_view why) {
    return absl::UnavailableError(absl::StrCat("cannot read ", path, ": ", std::string(why)));
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return failed(std::strerror(errno));
  std::string content(kMaxFileBytes + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (file.bad() || (file.fail() && !file.eof())) return failed(std::strerror(errno));
  content.resize(static_cast<size_t>(file.gcount()));
  if (content.size() > kMaxFileBytes) return failed("it is larger than 1 MiB");
  return content;
}

}  // namespace

absl::StatusOr<FileContents> ReadFiles(const std::vector<std::string>& paths) {
  FileContents contents;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::string content, ReadSmallFile(path));
    contents.push_back(std::move(content));
  }
  return contents;
}

FileWatch::~FileWatch() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  stopped_.SignalAll();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<FileContents> FileWatch::Add(std::vector<std::string> paths, Changed changed) {
  absl::StatusOr<FileContents> contents = ReadFiles(paths);
  const Digest digest = DigestOf(contents);
  groups_.push_back({std::move(paths), std::move(changed), digest, digest});
  return contents;
}

void FileWatch::Start() {
  if (!groups_.empty()) thread_ = StartThread([this] { Run(); });
}

Digest FileWatch::DigestOf(const absl::StatusOr<FileContents>& contents) {
  std::string all = contents.ok() ? "read" : std::string(contents.status().message());
  if (!contents.ok()) return Sha256(all);
  for (const std::string& content : *contents) {
    const Digest digest = Sha256(content);
    all.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  return Sha256(all);
}

bool FileWatch::Rest() {
  absl::MutexLock lock(&mutex_);
  return stopped_.AwaitFor(&mutex_, absl::Condition(&stop_), interval_);
}

void FileWatch::Run() {
  while (!Rest()) {
    for (Group& group : groups_) Check(group);
  }
}

void FileWatch::Check(Group& group) {
  const absl::StatusOr<FileContents> contents = ReadFiles(group.paths);
  const Digest digest = DigestOf(contents);
  const bool settled = digest == group.last;
  group.last = digest;
  if (!settled || digest == group.reported) return;
  group.reported = digest;
  group.changed(contents);
}

}  // namespace longview::server
