// A generating model's steps, with a clock that the test owns.
#include "server/engine/step_pace.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace longview::server {
namespace {

// Steps that really take so long, over what the model predicts for them.
struct Machine {
  double token_seconds = 1e-4, step_seconds = 6e-4;  // Real: a token read, a step.
  double read_error = 1, step_error = 1;             // Predicted over real.
  StepPace pace = {};
  absl::Time now = absl::UnixEpoch();

  void Step(int tokens) {
    const double seconds = tokens * token_seconds + step_seconds;
    now += absl::Seconds(seconds);
    pace.Computed(tokens * token_seconds * read_error, step_seconds * step_error, seconds, now);
  }
  void Calls(int count, int prompt, int sampled) {
    for (int call = 0; call < count; ++call) {
      for (int read = 0; read < prompt; read += 512) Step(std::min(512, prompt - read));
      for (int i = 0; i < sampled; ++i) Step(0);
    }
  }
  // The prediction at its pace, over the time that it really takes.
  double ReadingIsOff() const { return read_error * pace.OfReading(now); }
  double SamplingIsOff() const { return step_error * pace.OfSampling(now); }
};

TEST(StepPaceTest, NothingIsKnownAtFirst) {
  const Machine machine;
  EXPECT_EQ(machine.pace.OfReading(machine.now), 1);
  EXPECT_EQ(machine.pace.OfSampling(machine.now), 1);
}

TEST(StepPaceTest, ANoisyStartIsCorrectedByACallHoweverFarOff) {
  for (const double error : {0.2, 5.0, 11.0, 200.0, 2000.0}) {
    Machine machine = {.read_error = error, .step_error = error};
    machine.Calls(3, 4096, 100);
    EXPECT_NEAR(machine.SamplingIsOff(), 1, 0.1) << error;
    EXPECT_NEAR(machine.ReadingIsOff(), 1, 0.15) << error;
  }
}

TEST(StepPaceTest, StepsThatWereTimedFarTooSlowSayNothingOfPrompts) {
  Machine machine = {.step_error = 200};
  machine.Calls(5, 2000, 50);
  EXPECT_NEAR(machine.SamplingIsOff(), 1, 0.2);
  EXPECT_NEAR(machine.ReadingIsOff(), 1, 0.2);
  // Nor do many calls of few tokens.
  machine.Calls(100, 3, 50);
  EXPECT_NEAR(machine.SamplingIsOff(), 1, 0.2);
  EXPECT_NEAR(machine.ReadingIsOff(), 1, 0.2);
  machine.Calls(3, 50000, 1);
  EXPECT_NEAR(machine.ReadingIsOff(), 1, 0.1);
}

TEST(StepPaceTest, BothDirectionsAreFollowedFromThenOn) {
  Machine machine = {.read_error = 11, .step_error = 11};
  machine.Calls(3, 4096, 100);
  // A neighbour comes, and goes.
  for (const double slower : {3.0, 1.0}) {
    machine.token_seconds = 1e-4 * slower;
    machine.step_seconds = 6e-4 * slower;
    machine.read_error = machine.step_error = 11 / slower;
    machine.Calls(10, 4096, 200);
    EXPECT_NEAR(machine.SamplingIsOff(), 1, 0.1) << slower;
    EXPECT_NEAR(machine.ReadingIsOff(), 1, 0.15) << slower;
  }
}

}  // namespace
}  // namespace longview::server
