#include "models/pauses.h"

#include <utility>

namespace longview::models {
namespace {

thread_local Pauses* pause_scope = nullptr;

}  // namespace

PauseScope::PauseScope(Pauses* pauses) : before_(std::exchange(pause_scope, pauses)) {}

PauseScope::~PauseScope() { pause_scope = before_; }

void PauseBetweenLoops() {
  if (pause_scope == nullptr) return;
  Pauses* const pauses = pause_scope;
  const PauseScope none(nullptr);
  pauses->Pause();
}

}  // namespace longview::models
