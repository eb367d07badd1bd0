// One compute thread or all of them, for steps of a kind: whichever takes less time here and now.
//
// Threads that share a step meet at each of its loops. Where a loop takes microseconds that costs
// as much as it saves, and where another process has one of the cores, every loop waits until the
// thread there gets its turn: a hundred times the step's own time. Nothing but time tells, so both
// are timed. The one in use goes on; when the other was faster before, or once in a while, the
// other computes for some milliseconds, then the one in use again, and the faster one is used from
// then on. What such trials lose is a small share of the time.
#pragma once

#include <array>
#include <cstddef>
#include <map>

namespace longview::models {

enum class Team { kOne, kAll };

// Not thread-safe.
class TeamChoice {
 public:
  // For a step of `kind` whose predicted work is `work`, in any unit that steps of the kind share.
  // `predicted`: seconds, until some are known; steps that take long use all threads.
  Team Choose(int kind, double work, double predicted);

  // Records that a step of that kind took `seconds`.
  void Note(int kind, Team team, double work, double seconds);

 private:
  struct Pace {
    double rate() const { return seconds / work; }
    // `kept`: share of the earlier steps that still counts.
    void Add(double step_work, double step_seconds, double kept);

    int steps = 0;
    double seconds = 0, work = 0;
  };
  using Paces = std::array<Pace, 2>;
  // Whether a trial tells as much of it as it needs to.
  static bool Enough(const Pace& pace);
  struct Kind {
    bool Knows() const;
    double Expected(Team team, double work, double predicted) const;
    // After a step of the other team in a trial: whether the trial goes on.
    bool GoesOn();
    // Ends a trial; `step`: seconds of one without it, `lost`: in all.
    void Pay(double step, double lost);
    // Whether the trial ended and the other team took over.
    bool EndTrial();

    Paces paces = {};  // The lately used one's of late, the other's of its last trial.
    Paces trial = {};  // In the trial under way; the first one begins with the first step.
    std::array<bool, 2> warm = {};
    Team used = Team::kAll;
    bool tries = false;
    double credit = 0;        // Seconds that may be lost by trials; below 0 once more were.
    double since_change = 0;  // Seconds of steps.
    double setback = 0;
    int failures = 0;  // Trials in a row.
  };
  static size_t Place(Team team) { return static_cast<size_t>(team); }

  std::map<int, Kind> kinds_;
};

}  // namespace longview::models
