// Several lanes of one locked queue, a thread each, while clients come and go and a device is lost.
#include <memory>

#include "tests/server/scheduler/queue_storm.h"

namespace longview::server {
namespace {

TEST(LanesQueueTest, ManyThreadsAndALostLaneLeaveNothingBehind) {
  constexpr int kLanes = 3;
  constexpr int kEach = 2000;
  QueueStorm storm(kLanes);
  DeviceQueue& queue = storm.queue();
  std::vector<std::unique_ptr<LaneThread>> lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.push_back(std::make_unique<LaneThread>(queue, lane));
  }
  storm.RunClients(kEach, 3, [&](std::mt19937& random, Ticket ticket) {
    if (!QueueStorm::InBatch(ticket)) {
      ticket.lane = std::max(-1, static_cast<int>(random() % 6) - 3);
    }
    const bool admitted = queue.Admit(ticket).verdict == Verdict::kAdmitted;
    if (random() % 64 == 0) queue.Wake(static_cast<int>(random() % kLanes));
    if (ticket.id == kEach / 2) {  // The first client's.
      lanes[1]->broken = true;
      queue.Wake(1);
    }
    return admitted;
  });
  storm.Settle();
  int ended = storm.ended();
  for (const auto& lane : lanes) {
    lane->Stop();
    ended += lane->ended();
  }
  EXPECT_EQ(ended, QueueStorm::kClients * kEach);
  EXPECT_TRUE(queue.lost(1));
  EXPECT_GT(lanes[0]->finished, 0);
  EXPECT_GT(lanes[2]->finished, 0);
}

}  // namespace
}  // namespace longview::server
