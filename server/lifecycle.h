// Is the server ready, and is it leaving?
#pragma once

#include <atomic>

#include "server/change_signal.h"

namespace longview::server {

// Thread-safe. Set by main, read by health checks and transports.
class Lifecycle {
 public:
  // kStarting -> kServing -> kDraining (SIGTERM: not ready, everything still accepted)
  // -> kStopping (new calls are refused with UNAVAILABLE).
  enum class Phase { kStarting, kServing, kDraining, kStopping };

  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  void set_phase(Phase phase) {
    phase_.store(phase, std::memory_order_release);
    changes_.Notify();
  }
  ChangeSignal& changes() { return changes_; }
  bool ready() const { return phase() == Phase::kServing; }
  bool accepting() const { return phase() != Phase::kStopping; }

 private:
  std::atomic<Phase> phase_{Phase::kStarting};
  ChangeSignal changes_;
};

}  // namespace longview::server
