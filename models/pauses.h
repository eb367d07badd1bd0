// Points of a layer at which others may run: after each of its parallel loops.
#pragma once

namespace longview::models {

class Pauses {
 public:
  virtual ~Pauses() = default;
  // Called inside Run::Advance, on its thread, many times a layer and at uneven distances: it has
  // to be cheap where nothing is to be done. Other runs may be begun, advanced and destroyed in it,
  // of the same model too, but not the one that is inside. Not called again before it returns. Must
  // not throw.
  virtual void Pause() = 0;
};

// While it lives, what the calling thread computes pauses. Like LibTorch's guards it speaks for its
// thread, so that no family has to hand it on. Scopes nest; the inner one counts.
class PauseScope {
 public:
  // Borrowed; null = no pauses.
  explicit PauseScope(Pauses* pauses);
  ~PauseScope();
  PauseScope(const PauseScope&) = delete;
  PauseScope& operator=(const PauseScope&) = delete;

 private:
  Pauses* const before_;
};

// A loop is over and the thread holds nothing that others could need: pauses if its scope says so.
void PauseBetweenLoops();

// Seconds that the calling thread has spent in pauses, for clocks of what it computes itself.
double PausedSeconds();

// Computes it to its end; pauses between its parts too.
template <typename Run>
void RunToEnd(Run& run) {
  while (run.Advance()) PauseBetweenLoops();
}

}  // namespace longview::models
