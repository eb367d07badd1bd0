#include "server/log/line_queue.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/log/bounded_write.h"
#include "server/scheduler/thread_loop.h"

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
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LineQueue::Add(std::string_view line) {
  bool wake;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + line.size() + 1 > max_bytes_) {
      ++dropped_;
      return;
    }
    const bool was_roomy = waiting_.size() <= max_bytes_ / 2;
    waiting_.append(line).push_back('\n');
    added_bytes_ += line.size() + 1;
    wake = std::exchange(idle_, false) || (was_roomy && waiting_.size() > max_bytes_ / 2);
  }
  if (wake) changed_.notify_one();
}

bool LineQueue::Flush(absl::Duration patience) {
  std::unique_lock lock(mutex_);
  const uint64_t target = added_bytes_;
  return written_.wait_for(lock, absl::ToChronoMilliseconds(patience),
                           [&] { return done_bytes_ >= target; });
}

uint64_t LineQueue::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

bool LineQueue::WriteOut(std::string_view text) {
  while (true) {
    text.remove_prefix(BoundedWrite(descriptor_, text, kSlice));
    if (text.empty()) return true;
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
  }
}

void LineQueue::Loop() {
  std::unique_lock lock(mutex_);
  std::string text;
  while (true) {
    while (waiting_.empty() && !ending_) {
      idle_ = true;
      changed_.wait(lock);
    }
    idle_ = false;
    changed_.wait_for(lock, absl::ToChronoMilliseconds(kGather),
                      [&] { return ending_ || waiting_.size() > max_bytes_ / 2; });
    if (waiting_.empty()) return;
    text.clear();
    text.swap(waiting_);
    const uint64_t bytes = text.size();
    lock.unlock();
    if (!WriteOut(text)) return;
    lock.lock();
    done_bytes_ += bytes;
    written_.notify_all();
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
