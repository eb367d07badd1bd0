#include "server/log/line_queue.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/log/bounded_write.h"
#include "server/scheduler/thread_loop.h"
#include "server/scheduler/without_lock.h"

namespace longview::server {
namespace {

// How long a blocked write goes on before it looks whether the queue ends.
constexpr absl::Duration kSlice = absl::Milliseconds(100);

constexpr absl::Duration kLastPatience = absl::Seconds(1);

// Lines of a moment leave in one write: waking the thread costs more than a line does.
constexpr absl::Duration kGather = absl::Milliseconds(5);

}  // namespace

LineQueue::LineQueue(int descriptor, size_t max_bytes, Report report)
    : descriptor_(descriptor),
      max_bytes_(max_bytes),
      report_(std::move(report)),
      thread_(StartThread([this] { Loop(); })) {}

LineQueue::~LineQueue() {
  Flush(kLastPatience);
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  changed_.Signal();
  thread_.join();
}

void LineQueue::Add(std::string_view line) {
  bool wake;
  {
    absl::MutexLock lock(&mutex_);
    if (waiting_.size() + line.size() + 1 > max_bytes_) {
      ++dropped_;
      return;
    }
    const bool was_roomy = waiting_.size() <= max_bytes_ / 2;
    waiting_.append(line).push_back('\n');
    added_bytes_ += line.size() + 1;
    wake = std::exchange(idle_, false) || (was_roomy && waiting_.size() > max_bytes_ / 2);
  }
  if (wake) changed_.Signal();
}

bool LineQueue::Flush(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  const uint64_t target = added_bytes_;
  const auto written = [&]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_bytes_ >= target; };
  return written_.AwaitFor(&mutex_, absl::Condition(&written), patience);
}

uint64_t LineQueue::dropped() const {
  absl::MutexLock lock(&mutex_);
  return dropped_;
}

bool LineQueue::WriteOut(std::string_view text) {
  while (true) {
    text.remove_prefix(BoundedWrite(descriptor_, text, kSlice));
    if (text.empty()) return true;
    absl::MutexLock lock(&mutex_);
    if (ending_) return false;
  }
}

void LineQueue::Loop() {
  const auto full = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || waiting_.size() > max_bytes_ / 2;
  };
  absl::MutexLock lock(&mutex_);
  std::string text;
  while (true) {
    while (waiting_.empty() && !ending_) {
      idle_ = true;
      changed_.Wait(&mutex_);
    }
    idle_ = false;
    changed_.AwaitFor(&mutex_, absl::Condition(&full), kGather);
    if (waiting_.empty()) return;
    text.clear();
    text.swap(waiting_);
    const uint64_t bytes = text.size();
    if (!WithoutLock(&mutex_, [&] { return WriteOut(text); })) return;
    done_bytes_ += bytes;
    written_.SignalAll();
    const uint64_t lost = dropped_ - reported_;
    reported_ = dropped_;
    if (lost > 0) {
      const std::string line = report_(lost) + '\n';
      added_bytes_ += line.size();
      waiting_.insert(0, line);  // Lost before what waits now came.
    }
  }
}

}  // namespace longview::server
