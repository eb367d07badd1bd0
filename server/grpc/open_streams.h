// The streams that are open, so that a stopping server can end those that idle.
#pragma once

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

// Something that stays open until it is told to end.
class EndableStream {
 public:
  virtual ~EndableStream() = default;
  // Work in flight may finish, then the stream ends with UNAVAILABLE. Must not block.
  virtual void EndWhenIdle() = 0;
};

// Thread-safe.
class OpenStreams {
 public:
  // After EndAll a new stream is told to end at once.
  void Add(EndableStream* stream) {
    absl::MutexLock lock(&mutex_);
    if (ending_) return stream->EndWhenIdle();
    streams_.insert(stream);
  }

  // Afterwards EndWhenIdle of this stream neither runs nor comes.
  void Remove(EndableStream* stream) {
    absl::MutexLock lock(&mutex_);
    streams_.erase(stream);
  }

  void EndAll() {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    for (EndableStream* stream : streams_) stream->EndWhenIdle();
  }

 private:
  absl::Mutex mutex_;  // Taken before a stream's own.
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<EndableStream*> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::server
