// Lines on their way to a descriptor: bounded, written by a thread of their own.
//
// spdlog's asynchronous sink is not used because it joins its thread without a bound: a stderr
// that nobody reads would keep the process from ending.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/steady_cond_var.h"

namespace longview::server {

// Thread-safe.
class LineQueue {
 public:
  // A line, without its newline, that says how many lines were lost; written as soon as there is
  // room again. Runs on the queue's thread.
  using Report = std::function<std::string(uint64_t lost)>;

  // Holds at most `max_bytes` that wait and as many that are being written. The descriptor stays
  // the caller's.
  LineQueue(int descriptor, size_t max_bytes, Report report);
  // Flushes for a second; what is left then is lost.
  ~LineQueue();

  // Adds the line and a newline. Never blocks on the descriptor: a line that finds no room is
  // lost and counted.
  void Add(std::string_view line);

  // Waits until all that was added before is written; false if that takes longer than `patience`.
  bool Flush(absl::Duration patience);

  uint64_t dropped() const;

 private:
  void Loop();
  // False once the queue ends.
  bool WriteOut(std::string_view text) ABSL_LOCKS_EXCLUDED(mutex_);

  const int descriptor_;
  const size_t max_bytes_;
  const Report report_;
  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;
  SteadyCondVar written_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t reported_ ABSL_GUARDED_BY(mutex_) = 0;  // Dropped lines already reported.
  uint64_t added_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace longview::server
