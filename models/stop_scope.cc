#include "models/stop_scope.h"

#include <utility>

namespace longview::models {
namespace {

thread_local const std::atomic<bool>* stop_scope = nullptr;

}  // namespace

StopScope::StopScope(const std::atomic<bool>* stop) : before_(std::exchange(stop_scope, stop)) {}

StopScope::~StopScope() { stop_scope = before_; }

const std::atomic<bool>* StopFlag() { return stop_scope; }

absl::Status CheckStop() {
  if (stop_scope == nullptr || !stop_scope->load(std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  return absl::CancelledError("nobody waits for it any more");
}

}  // namespace longview::models
