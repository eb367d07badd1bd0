#include "tests/kernels/cuda/support/emulated_barriers.h"

#include <gtest/gtest.h>

#include <utility>

namespace longview::kernels::cuda::testing {

EmulatedBarriers::EmulatedBarriers(int count, ThreadOrder order)
    : order_(order), barriers_(count), turn_(order == ThreadOrder::kRising ? kLoader : kGroup) {}

void EmulatedBarriers::Init(int barrier, int arrivals) {
  ASSERT_TRUE(barrier >= 0 && barrier < static_cast<int>(barriers_.size())) << "outside";
  barriers_[barrier] = {arrivals, arrivals, 0, 0};
}

void EmulatedBarriers::EndPhaseIfDue(Barrier& barrier) {
  EXPECT_GT(barrier.arrivals, 0) << "not initialised";
  EXPECT_GE(barrier.missing, 0) << "more arrivals than the phase waits for";
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  barrier.missing = barrier.arrivals;
  barrier.parity ^= 1;
}

void EmulatedBarriers::Arrive(int barrier, int count) {
  barriers_[barrier].missing -= count;
  EndPhaseIfDue(barriers_[barrier]);
  // A role that could go on now may be quicker than the one that arrived.
  const Role other = turn_ == kLoader ? kGroup : kLoader;
  if (order_ == ThreadOrder::kFalling && CanGoOn(other)) GiveWay();
}

void EmulatedBarriers::Expect(int barrier, int bytes) { barriers_[barrier].bytes += bytes; }

void EmulatedBarriers::AddCopy(int barrier, int bytes, int arrivals, std::function<void()> land) {
  copies_.push_back({barrier, bytes, arrivals, std::move(land)});
  if (order_ == ThreadOrder::kRising) LandFirst();
}

void EmulatedBarriers::LandFirst() {
  const Copy copy = std::move(copies_.front());
  copies_.pop_front();
  copy.land();
  Barrier& barrier = barriers_[copy.barrier];
  barrier.bytes -= copy.bytes;
  barrier.missing -= copy.arrivals;
  EndPhaseIfDue(barrier);
}

bool EmulatedBarriers::CanGoOn(Role role) const {
  const Waiting& waiting = roles_[role];
  if (waiting.done) return false;
  return broken_ || waiting.barrier < 0 || Over(waiting.barrier, waiting.parity);
}

void EmulatedBarriers::Await(int barrier, uint32_t parity) {
  const Role role = turn_;
  roles_[role].barrier = barrier;
  roles_[role].parity = parity;
  const Role other = role == kLoader ? kGroup : kLoader;
  while (!CanGoOn(role)) {
    if (CanGoOn(other)) {
      GiveWay();
    } else if (!copies_.empty()) {
      LandFirst();
    } else {
      ADD_FAILURE() << "both roles wait, or one for who is done";
      broken_ = true;
    }
  }
  roles_[role].barrier = -1;
}

void EmulatedBarriers::GiveWay() {
  std::unique_lock lock(mutex_);
  const Role role = turn_;
  turn_ = role == kLoader ? kGroup : kLoader;
  turned_.notify_all();
  turned_.wait(lock, [&] { return turn_ == role; });
}

void EmulatedBarriers::Enter(Role role) {
  std::unique_lock lock(mutex_);
  turned_.wait(lock, [&] { return turn_ == role; });
}

void EmulatedBarriers::Leave() {
  const std::lock_guard lock(mutex_);
  roles_[turn_].done = true;
  // Whom nobody waits for any more has every turn.
  turn_ = turn_ == kLoader ? kGroup : kLoader;
  turned_.notify_all();
}

void EmulatedBarriers::CheckIdle() const {
  EXPECT_TRUE(copies_.empty()) << "copies on their way to memory that is no longer the block's";
  for (const Barrier& barrier : barriers_) {
    EXPECT_EQ(barrier.missing, barrier.arrivals) << "a phase half done";
    EXPECT_EQ(barrier.bytes, 0);
  }
}

}  // namespace longview::kernels::cuda::testing
