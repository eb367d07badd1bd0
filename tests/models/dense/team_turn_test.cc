// The time of a step, and the threads of its parts.
#include "models/team_turn.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace longview::models {
namespace {

void Pass(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// Steps of a few rows that pass the same time whatever their team, but for what lies in between.
TEST(TeamTurnTest, OthersStepsInBetweenAreNotItsTime) {
  SetComputeThreads(2);
  TeamChoice outer, inner;
  // Learned: one thread is slower.
  for (int i = 0; i < 20; ++i) {
    TeamTurn turn(&outer);
    turn.BeginRows(1, 1e-3);
    {
      const TeamTurn::Part part(turn);
      const bool one = TorchParallelFor().threads() == 1;
      Pass(one ? 8 : 2);
      // Another model's step, long where this one's team is the faster.
      TeamTurn other(&inner);
      other.BeginRows(4, 1e-3);
      const TeamTurn::Part others(other);
      Pass(one ? 0 : 15);
    }
    turn.End();
  }
  TeamTurn turn(&outer);
  turn.BeginRows(1, 1e-3);
  const TeamTurn::Part part(turn);
  EXPECT_EQ(TorchParallelFor().threads(), 2);
}

TEST(TeamTurnTest, StepsWithoutAChoiceHaveAllThreads) {
  SetComputeThreads(2);
  for (int i = 0; i < 20; ++i) {
    TeamTurn turn(nullptr);
    turn.BeginRows(1, 1e-3);
    {
      const TeamTurn::Part part(turn);
      EXPECT_EQ(TorchParallelFor().threads(), 2);
    }
    turn.End();
  }
}

TEST(TeamTurnTest, AForcedTeam) {
  SetComputeThreads(2);
  TeamChoice choice;
  const TeamForced forced(Team::kOne);
  TeamTurn turn(&choice);
  turn.BeginRows(1, 1.0);
  const TeamTurn::Part part(turn);
  EXPECT_EQ(TorchParallelFor().threads(), 1);
}

}  // namespace
}  // namespace longview::models
