// Tells when small files change: keys and certificates, exchanged while the server runs.
//
// Reads them once per interval instead of asking the system for events: that works on every file
// system and through the symbolic links that Kubernetes swaps under a mounted secret.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/security/digest.h"

namespace longview::server {

// Contents of the files, in the order of the paths.
using FileContents = std::vector<std::string>;

// UNAVAILABLE names the first file that cannot be read, or is larger than 1 MiB, and why.
absl::StatusOr<FileContents> ReadFiles(const std::vector<std::string>& paths);

// Add, Start and the destructor belong to one thread; all of Add before Start.
class FileWatch {
 public:
  explicit FileWatch(absl::Duration interval) : interval_(interval) {}
  ~FileWatch();

  // Returns what the files hold. `changed` runs on the watch's thread, once for every change, when
  // two readings in a row agree: what is being written is not half read, and several files that
  // belong together are taken together. It gets an error when they cannot be read any more.
  using Changed = std::function<void(const absl::StatusOr<FileContents>& contents)>;
  absl::StatusOr<FileContents> Add(std::vector<std::string> paths, Changed changed);

  void Start();

 private:
  struct Group {
    std::vector<std::string> paths;
    Changed changed;
    Digest reported;  // The last one handed out; a digest, since the files hold secrets.
    Digest last;      // The reading before this one.
  };

  static Digest DigestOf(const absl::StatusOr<FileContents>& contents);
  void Run();
  // Waits for an interval; whether the watch ends.
  bool Rest();
  static void Check(Group& group);

  const absl::Duration interval_;
  std::vector<Group> groups_;  // Used by the watch's thread alone once it runs.
  absl::Mutex mutex_;
  SteadyCondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace longview::server
