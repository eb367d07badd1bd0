#include "models/stop_scope.h"

#include <utility>

namespace longview::models {
namespace {

thread_local const std::atomic<bool>* scope = nullptr;

}  // namespace

StopScope::StopScope(const std::atomic<bool>* stop) : before_(std::exchange(scope, stop)) {}

StopScope::~StopScope() { scope = before_; }

const std::atomic<bool>* StopFlag() { return scope; }

absl::Status CheckStop() {
  if (scope == nullptr || !scope->load(std::memory_order_relaxed)) return absl::OkStatus();
  return absl::CancelledError("nobody waits for it any more");
}

}  // namespace longview::models
