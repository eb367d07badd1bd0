// The files of `longview search` against one question.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/command_line.h"
#include "client/cli/console.h"
#include "client/cli/over_inputs.h"
#include "client/cli/search/best_places.h"
#include "client/cli/search/passages.h"
#include "client/cli/summary.h"

namespace longview::client {

// To be used by one thread: Run has its own. What it is made of is borrowed.
class FolderSearch {
 public:
  FolderSearch(const CommandLine& line, Console& console, const Question& question)
      : line_(line), console_(console), question_(question) {}

  // Reads the files, several at a time, with progress and errors on the console.
  void Run(const std::vector<std::string>& paths);

  // The best places of all that was read, best first.
  void PrintPlaces();

  bool failed() const {
    absl::MutexLock lock(&mutex_);
    return failed_;
  }
  // Why vectors could not be kept, and whether some were.
  absl::Status not_kept() const {
    absl::MutexLock lock(&mutex_);
    return not_kept_;
  }
  bool kept() const {
    absl::MutexLock lock(&mutex_);
    return kept_;
  }

  // One line about what was read.
  std::string SummaryText(double seconds) const;

 private:
  // All of a file's passages, but not its text.
  struct FileResult {
    std::vector<Passage> passages;
    std::string digest;  // The text's, which is read again for the places shown.
    std::string text;    // Kept of standard input alone, which cannot be read again.
  };

  // The text of a file as it is searched; empty: it is no text.
  absl::StatusOr<std::string> TextOfFile(const std::string& path);
  Outcome ReadFile(size_t index, PassageReader& reader);
  // Z-scores need every passage's scores.
  std::vector<Place> BestOfAll();
  // Nullopt with a message if the file is not any more what was searched.
  std::optional<std::string> TextOf(const Place& place);
  void Print(const Place& place, const std::string& text);
  void PrintError(const std::string& path, const grpc::Status& status);
  void Done(const std::string& path, const Outcome& outcome);

  const CommandLine& line_;
  Console& console_;
  const Question& question_;
  std::vector<std::string> paths_;
  std::vector<FileResult> results_;  // By path; each is one worker's while they run.
  std::atomic<int64_t> binary_ = 0;
  int64_t places_ = 0;

  mutable absl::Mutex mutex_;  // The console, too, is used under it while workers run.
  Summary summary_ ABSL_GUARDED_BY(mutex_);
  absl::Status not_kept_ ABSL_GUARDED_BY(mutex_);
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  bool kept_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace longview::client
