// Steps choose their threads by what they take: the clock here is the test's.
#include "models/team_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace longview::models {
namespace {

constexpr int kKind = 3;

// Steps of one kind, each as long as the test says.
class TeamChoiceTest : public testing::Test {
 protected:
  // Runs steps for `seconds`; returns what they took beyond the faster team.
  double Run(double one, double all, double seconds) {
    double lost = 0;
    for (const double end = now_ + seconds; now_ < end;) {
      const Team team = choice_.Choose(kKind, 1, 1e-3);
      const double took = team == Team::kOne ? one : all;
      now_ += took;
      choice_.Note(kKind, team, 1, took);
      lost += took - std::min(one, all);
      ++steps_[team == Team::kOne ? 0 : 1];
    }
    return lost;
  }

  TeamChoice choice_;
  double now_ = 100;
  int steps_[2] = {0, 0};
};

TEST_F(TeamChoiceTest, TheFasterTeamComputes) {
  EXPECT_LT(Run(1e-4, 2e-4, 1), 0.04);
  EXPECT_GT(steps_[0], 20 * steps_[1]);
}

TEST_F(TeamChoiceTest, LongerStepsUseAllThreads) {
  Run(0.02, 0.01, 0.2);
  EXPECT_LT(Run(0.02, 0.01, 10), 0.15);
  EXPECT_GT(steps_[1], 50 * steps_[0]);
}

// Another process takes a core, then goes: each is noticed soon, and tried for little.
TEST_F(TeamChoiceTest, ANeighbourComesAndGoes) {
  Run(0.002, 0.001, 1);
  EXPECT_LT(Run(0.002, 0.1, 10), 1.5);
  steps_[0] = steps_[1] = 0;
  EXPECT_LT(Run(0.002, 0.1, 20), 0.8);
  EXPECT_GT(steps_[0], 100 * steps_[1]);
  Run(0.002, 0.001, 20);
  steps_[0] = steps_[1] = 0;
  EXPECT_LT(Run(0.002, 0.001, 10), 0.15);
  EXPECT_GT(steps_[1], 50 * steps_[0]);
}

// Most steps on all threads are as fast as ever, and one in forty waits for a turn.
TEST_F(TeamChoiceTest, RareLongWaitsCount) {
  Run(1.2e-4, 1e-4, 1);
  int turn = 0;
  double seconds = 0, least = 0;
  for (const double end = now_ + 10; now_ < end; ++turn) {
    const Team team = choice_.Choose(kKind, 1, 1e-3);
    const double took = team == Team::kOne ? 1.2e-4 : turn % 40 == 0 ? 4e-3 : 1e-4;
    now_ += took;
    choice_.Note(kKind, team, 1, took);
    seconds += took;
    least += 1.2e-4;
  }
  EXPECT_LT(seconds, 1.1 * least);
}

// The pace of one thread is known from before: all threads need not be timed for long to be left.
TEST_F(TeamChoiceTest, ThreadsThatWaitInEachStepAreLeftWithinMilliseconds) {
  Run(1.2e-4, 1e-4, 1);
  EXPECT_LT(Run(1.2e-4, 8e-4, 0.2), 0.02);
}

// Trying one thread would take seconds.
TEST_F(TeamChoiceTest, LongStepsAreNotTried) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(choice_.Choose(kKind, 1, 3.0), Team::kAll);
    now_ += 3;
    choice_.Note(kKind, Team::kAll, 1, 3.0);
  }
  // Thought to be long, and found short: by the time that is known it is tried.
  EXPECT_EQ(choice_.Choose(kKind + 1, 1, 3.0), Team::kAll);
  for (int i = 0; i < 6; ++i) {
    const Team team = choice_.Choose(kKind + 1, 1, 3.0);
    ++steps_[team == Team::kOne ? 0 : 1];
    choice_.Note(kKind + 1, team, 1, 0.02);
  }
  EXPECT_EQ(steps_[0], 3);
}

TEST_F(TeamChoiceTest, KindsAreApart) {
  Run(1e-4, 2e-4, 0.1);
  EXPECT_EQ(choice_.Choose(kKind + 1, 1, 1e-3), Team::kAll);
}

// Long and short steps of a kind, each as fast by its work, do not look like good and bad times.
TEST_F(TeamChoiceTest, WorkIsTakenIntoAccount) {
  double lost = 0, seconds = 0;
  for (int i = 0; i < 5000; ++i) {
    const double work = i % 7 == 0 ? 100 : 1;
    const Team team = choice_.Choose(kKind, work, 1e-3);
    const double took = work * (team == Team::kOne ? 1e-4 : 1.5e-4);
    now_ += took;
    choice_.Note(kKind, team, work, took);
    seconds += took;
    lost += took - work * 1e-4;
  }
  EXPECT_LT(lost, 0.035 * seconds);
}

}  // namespace
}  // namespace longview::models
