// Tells those who listen that something has changed.
#pragma once

#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

// Thread-safe.
class ChangeSignal {
  struct State {
    absl::Mutex mutex;
    std::list<std::function<void()>> listeners ABSL_GUARDED_BY(mutex);
  };

 public:
  // Listens until it is destroyed; the listener does not run after that. May outlive the signal.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(Subscription&&) = default;
    Subscription& operator=(Subscription&&) = default;
    ~Subscription() {
      if (state_ == nullptr) return;
      absl::MutexLock lock(&state_->mutex);
      state_->listeners.erase(place_);
    }

   private:
    friend class ChangeSignal;
    Subscription(std::shared_ptr<State> state, std::list<std::function<void()>>::iterator place)
        : state_(std::move(state)), place_(place) {}

    std::shared_ptr<State> state_;
    std::list<std::function<void()>>::iterator place_;
  };

  // `listener` runs on the thread that changes something: it must not block or use the signal.
  [[nodiscard]] Subscription Subscribe(std::function<void()> listener) {
    absl::MutexLock lock(&state_->mutex);
    state_->listeners.push_back(std::move(listener));
    return Subscription(state_, std::prev(state_->listeners.end()));
  }

  void Notify() {
    absl::MutexLock lock(&state_->mutex);
    for (const auto& listener : state_->listeners) listener();
  }

 private:
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace longview::server
