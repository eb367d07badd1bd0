#include "models/pauses.h"

#include <chrono>
#include <utility>

namespace longview::models {
namespace {

thread_local Pauses* pause_scope = nullptr;
thread_local double paused_seconds = 0;

}  // namespace

PauseScope::PauseScope(Pauses* pauses) : before_(std::exchange(pause_scope, pauses)) {}

PauseScope::~PauseScope() { pause_scope = before_; }

void PauseBetweenLoops() {
  if (pause_scope == nullptr) return;
  Pauses* const pauses = pause_scope;
  const PauseScope none(nullptr);
  const double before = paused_seconds;
  const auto start = std::chrono::steady_clock::now();
  pauses->Pause();
  // Pauses of what ran in this one are part of it.
  paused_seconds =
      before + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double PausedSeconds() { return paused_seconds; }

}  // namespace longview::models
