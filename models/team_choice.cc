#include "models/team_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace longview::models {
namespace {

// In a kind's first step with a team code is generated and memory is touched: such a one does not
// count, unless another on one thread would take as long.
constexpr double kLongFirst = 0.05;
// Steps that take longer have long loops, and cost too much to try.
constexpr double kLongStep = 0.5;
// A pace is that of about so many seconds of steps, but of a dozen steps at least.
constexpr double kMemory = 0.03;
constexpr double kLeastKept = 0.92;
// A trial has so many steps and seconds of the other team, then as many of the one in use. A thread
// that has slept runs some milliseconds before another process has its turn: all threads look good
// for as long, and would each time if steps of one thread went between theirs.
constexpr int kTrialSteps = 3;
constexpr double kTrialSeconds = 0.02;
// One that loses more is given up.
constexpr double kTrialLoss = 0.003;
// Share of the time that may be lost by trials. More of that of one thread: what one takes is known
// from before, what all take depends on who else computes.
constexpr double kTriedByAll = 0.005, kTriedByOne = 0.03;
constexpr double kMostCredit = 0.05, kMostDebt = 0.15;  // Seconds.
// A trial that failed may have met a moment's trouble: what it lost is counted as one step at most,
// as twice that if the one before failed, and so on.
constexpr int kMostFailures = 6;
// How much faster the other has to be. All threads take cores from others: for a few percent, one
// is better.
constexpr double kOneBetter = 0.98, kAllBetter = 0.95;
// Seconds of credit that it costs if all threads lose their place: twice as much each time
// they kept it for less than kShortUse, half as much otherwise.
constexpr double kLeastSetback = 0.005, kMostSetback = 0.16;
constexpr double kShortUse = 0.3;

Team Other(Team team) { return team == Team::kOne ? Team::kAll : Team::kOne; }

double Better(Team team) { return team == Team::kOne ? kOneBetter : kAllBetter; }

}  // namespace

void TeamChoice::Pace::Add(double step_work, double step_seconds, double kept) {
  ++steps;
  seconds = seconds * kept + step_seconds;
  work = work * kept + step_work;
}

bool TeamChoice::Kind::Knows() const { return paces[0].steps > 0 && paces[1].steps > 0; }

bool TeamChoice::Enough(const Pace& pace) {
  return pace.steps >= kTrialSteps && pace.seconds >= kTrialSeconds;
}

double TeamChoice::Kind::Expected(Team team, double work, double predicted) const {
  const Pace& pace = paces[Place(team)].steps > 0 ? paces[Place(team)] : trial[Place(team)];
  return pace.steps > 0 ? pace.rate() * work : predicted;
}

Team TeamChoice::Choose(int kind, double work, double predicted) {
  Kind& state = kinds_[kind];
  const double of_used = state.Expected(state.used, work, predicted);
  const double of_other = state.Expected(Other(state.used), work, predicted);
  if (std::min(of_used, of_other) > kLongStep) return Team::kAll;
  if (!state.Knows()) {
    return state.trial[Place(Team::kOne)].steps < state.trial[Place(Team::kAll)].steps ? Team::kOne
                                                                                       : Team::kAll;
  }
  if (!state.tries && (state.credit > 0 || of_other < of_used * Better(Other(state.used)))) {
    state.tries = true;
    state.trial = {};
  }
  if (!state.tries) return state.used;
  return Enough(state.trial[Place(Other(state.used))]) ? state.used : Other(state.used);
}

void TeamChoice::Note(int kind, Team team, double work, double seconds) {
  if (work <= 0) return;
  Kind& state = kinds_[kind];
  if (!std::exchange(state.warm[Place(team)], true)) {
    if (team == Team::kAll || seconds < kLongFirst) return;
  }
  if (state.Knows() && !state.tries) {
    state.paces[Place(team)].Add(work, seconds, std::max(std::exp(-seconds / kMemory), kLeastKept));
    const double tried = team == Team::kAll ? kTriedByAll : kTriedByOne;
    state.credit = std::min(state.credit + tried * seconds, kMostCredit);
    state.since_change += seconds;
    return;
  }
  state.trial[Place(team)].Add(work, seconds, 1);
  if (!state.Knows()) {
    state.EndTrial();
    return;
  }
  if (team == state.used) {
    if (!state.EndTrial()) return;
  } else if (!state.GoesOn() || !state.EndTrial()) {
    return;
  }
  // All threads are faster again: a neighbour has gone, and steps of other kinds are tried, too.
  if (state.used == Team::kOne) return;
  for (auto& [other, others] : kinds_) {
    if (other != kind) others.credit = std::max(others.credit, kLeastSetback);
  }
}

bool TeamChoice::Kind::GoesOn() {
  const Pace& own = paces[Place(used)];
  const Pace& other = trial[Place(Other(used))];
  const double lost = other.seconds - own.rate() * other.work;
  if (other.steps == 1 ? lost < 0 : lost < kTrialLoss) return true;
  paces[Place(Other(used))] = other;
  Pay(own.rate() * other.work / other.steps, lost);
  return false;
}

void TeamChoice::Kind::Pay(double step, double lost) {
  tries = false;
  const double most = step * std::exp2(failures);
  credit = std::max(std::min(credit, 0.0) - std::clamp(lost, 0.0, most), -kMostDebt);
  failures = std::min(failures + 1, kMostFailures);
}

bool TeamChoice::Kind::EndTrial() {
  const Pace& own = trial[Place(used)];
  const Pace& other = trial[Place(Other(used))];
  if (own.steps == 0 || other.steps < kTrialSteps) return false;
  // The pace of one thread is known soon.
  const bool known = Enough(other) || used == Team::kAll;
  const bool loses = known && own.seconds - other.rate() * own.work > kTrialLoss;
  if (!loses && !(Enough(own) && Enough(other))) return false;
  const bool better = other.rate() < own.rate() * Better(Other(used));
  Pay(own.seconds / own.steps, other.seconds - own.rate() * other.work);
  paces = trial;
  trial = {};
  if (!better) return false;
  failures = 0;
  if (used == Team::kAll) {
    setback =
        std::clamp(setback * (since_change < kShortUse ? 2 : 0.5), kLeastSetback, kMostSetback);
    credit -= setback;
  }
  used = Other(used);
  since_change = 0;
  return true;
}

}  // namespace longview::models
