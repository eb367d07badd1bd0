// Watches that what a device's thread has begun comes back.
//
// The thread says what it begins, how long that is predicted to take, and whenever a part of it is
// done. Work is overdue once no part was done for the predicted time of the whole, times a factor,
// plus a floor: a layer cannot take longer than all layers, however wrong the prediction is.
// Begin, Beat and End belong to the device's thread and nest; Overdue is thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {

class TurnWatch {
 public:
  // `what`: the name of a model.
  void Begin(std::string_view what, double predicted_seconds) {
    absl::MutexLock lock(&mutex_);
    works_.push_back({std::string(what), predicted_seconds});
    beat_ = SteadyNow();
  }
  void Beat() {
    absl::MutexLock lock(&mutex_);
    beat_ = SteadyNow();
  }
  void End() {
    absl::MutexLock lock(&mutex_);
    works_.pop_back();
    beat_ = SteadyNow();
  }

  // From Begin to End.
  class Scope {
   public:
    Scope(TurnWatch& watch, std::string_view what, double predicted_seconds) : watch_(watch) {
      watch_.Begin(what, predicted_seconds);
    }
    ~Scope() { watch_.End(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TurnWatch& watch_;
  };

  // Whether the thread is at work that it has begun.
  bool busy() const {
    absl::MutexLock lock(&mutex_);
    return !works_.empty();
  }

  struct Late {
    std::string what;
    double predicted_seconds = 0;
    absl::Duration since;  // Since a part of it was done.
  };
  // The innermost work, if it is overdue.
  std::optional<Late> Overdue(double factor, absl::Duration floor) const {
    absl::MutexLock lock(&mutex_);
    if (works_.empty()) return std::nullopt;
    const absl::Duration since = SteadyNow() - beat_;
    const Work& work = works_.back();
    if (since <= absl::Seconds(factor * work.predicted_seconds) + floor) return std::nullopt;
    return Late{work.what, work.predicted_seconds, since};
  }

 private:
  struct Work {
    std::string what;
    double predicted_seconds;
  };

  mutable absl::Mutex mutex_;
  std::vector<Work> works_ ABSL_GUARDED_BY(mutex_);  // The innermost last.
  absl::Time beat_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::server
