// The streams that are open, so that a stopping server can end those that idle.
#pragma once

#include <mutex>
#include <set>

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
    std::lock_guard lock(mutex_);
    if (ending_) return stream->EndWhenIdle();
    streams_.insert(stream);
  }

  // Afterwards EndWhenIdle of this stream neither runs nor comes.
  void Remove(EndableStream* stream) {
    std::lock_guard lock(mutex_);
    streams_.erase(stream);
  }

  void EndAll() {
    std::lock_guard lock(mutex_);
    ending_ = true;
    for (EndableStream* stream : streams_) stream->EndWhenIdle();
  }

 private:
  std::mutex mutex_;  // Taken before a stream's own.
  bool ending_ = false;
  std::set<EndableStream*> streams_;
};

}  // namespace longview::server
