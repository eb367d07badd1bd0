#include "models/pauses.h"

#include <utility>

namespace longview::models {
namespace {

thread_local Pauses* scope = nullptr;

}  // namespace

PauseScope::PauseScope(Pauses* pauses) : before_(std::exchange(scope, pauses)) {}

PauseScope::~PauseScope() { scope = before_; }

void PauseBetweenLoops() {
  if (scope == nullptr) return;
  Pauses* const pauses = scope;
  const PauseScope none(nullptr);
  pauses->Pause();
}

}  // namespace longview::models
