#include "models/team_turn.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace longview::models {
namespace {

// Steps of so few rows are kinds of their own; longer ones lie two kinds to an octave.
constexpr int64_t kFewRows = 8;
// Kinds by time begin there, behind those by rows.
constexpr int kFirstTimeKind = 1000;

thread_local double others_seconds = 0;  // All parts that ended on this thread.
thread_local std::optional<Team> forced;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void TeamTurn::Begin(std::span<const Item* const> items) {
  double seconds = 0;
  for (const Item* item : items) seconds += item->cost().seconds;
  if (!(seconds > 0)) return Begin(0, 0, 0);
  Begin(kFirstTimeKind + static_cast<int>(std::lround(2 * std::log2(seconds))), seconds, seconds);
}

void TeamTurn::BeginRows(int64_t rows, double predicted) {
  const auto count = static_cast<double>(rows);
  if (rows <= kFewRows) return Begin(static_cast<int>(rows), count, predicted);
  Begin(static_cast<int>(kFewRows + std::lround(2 * std::log2(count))), count, predicted);
}

void TeamTurn::Begin(int kind, double work, double predicted) {
  if (forced) {
    team_ = *forced;
    return;
  }
  if (choice_ == nullptr || work <= 0 || WholeTeam() == 1) return;
  kind_ = kind;
  work_ = work;
  begun_ = true;
  team_ = choice_->Choose(kind, work, predicted);
}

TeamTurn::Part::Part(TeamTurn& turn) : turn_(turn), start_(Now()), others_(others_seconds) {
  scope_.emplace(turn.team_ == Team::kOne ? 1 : WholeTeam());
}

TeamTurn::Part::~Part() {
  const double took = Now() - start_;
  turn_.seconds_ += took - (others_seconds - others_);
  others_seconds = others_ + took;
}

void TeamTurn::End() {
  if (!begun_) return;
  begun_ = false;
  choice_->Note(kind_, team_, work_, seconds_);
}

TeamForced::TeamForced(Team team) { forced = team; }
TeamForced::~TeamForced() { forced.reset(); }

}  // namespace longview::models
