// A step's compute threads: chosen when it begins, kept until it ends, its time noted then.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "models/model.h"
#include "models/parallel.h"
#include "models/team_choice.h"

namespace longview::models {

// Used by one executor thread.
class TeamTurn {
 public:
  // `choice` is borrowed; null: always all threads.
  explicit TeamTurn(TeamChoice* choice) : choice_(choice) {}

  // Before the step computes; once. Without it all threads compute.
  void Begin(std::span<const Item* const> items);  // By their predicted time.
  void BeginRows(int64_t rows, double predicted);  // A step of so many tokens.

  // Around each part of the computation. What other steps compute within is not the step's time.
  class Part {
   public:
    explicit Part(TeamTurn& turn);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    TeamTurn& turn_;
    const double start_;
    const double others_;
    std::optional<TeamScope> scope_;
  };

  // Not all of the step was computed: its time says nothing.
  void Spoil() { begun_ = false; }
  // All of it was.
  void End();

 private:
  void Begin(int kind, double work, double predicted);

  TeamChoice* const choice_;
  bool begun_ = false;
  int kind_ = 0;
  double work_ = 0;
  double seconds_ = 0;
  Team team_ = Team::kAll;
};

// While it lives, steps that begin on the calling thread have that team. For tests.
class TeamForced {
 public:
  explicit TeamForced(Team team);
  ~TeamForced();
  TeamForced(const TeamForced&) = delete;
  TeamForced& operator=(const TeamForced&) = delete;
};

}  // namespace longview::models
