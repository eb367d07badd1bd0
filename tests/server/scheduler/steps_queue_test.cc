// Generating and batch tickets through the locked queue, from many threads at once; some were
// expected, and some leave a hold behind.
#include "tests/server/scheduler/queue_storm.h"

namespace longview::server {
namespace {

TEST(StepsQueueTest, ManyThreadsLeaveNothingBehind) {
  constexpr int kEach = 3000;
  QueueStorm storm(1);
  DeviceQueue& queue = storm.queue();
  LaneThread device(queue, 0, [](StepOutcome& outcome) {
    if (!outcome.done || outcome.id % 7 != 0) return;
    outcome.hold = 1 + outcome.id % 3;
    outcome.hold_bytes = 10;
  });
  storm.RunClients(kEach, 4, [&](std::mt19937& random, const Ticket& ticket) {
    Ticket unknown = ticket;
    unknown.bytes = 0;
    unknown.deadline = absl::InfiniteFuture();
    const bool admitted = queue.Expect(unknown).verdict == Verdict::kAdmitted &&
                          queue.Admit(ticket).verdict == Verdict::kAdmitted;
    if (random() % 64 == 0) queue.Hold(1 + random() % 3, 0);
    return admitted;
  });
  storm.Settle([&] {
    for (uint64_t key = 1; key <= 3; ++key) queue.Hold(key, 0);
  });
  device.Stop();
  EXPECT_EQ(storm.ended() + device.ended(), QueueStorm::kClients * kEach);
  EXPECT_GT(device.finished, QueueStorm::kClients * kEach / 2);
  EXPECT_GT(device.interruptions, 0);
}

}  // namespace
}  // namespace longview::server
