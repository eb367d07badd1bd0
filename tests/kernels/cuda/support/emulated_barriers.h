// mbarriers of a thread block on a CPU, and whose turn it is: the two roles of a block run one at a
// time, each until it waits for a phase that is not over.
//
// Rising: the loader goes first and as far as it can, and copies come at once, so a program that
// overwrites what is still read fails. Falling: the group goes first, whoever's arrival lets the
// other go on makes way for it at once, and copies come when nobody can go on without them, so one
// that reads too early fails.
//
// Used by the two threads that play the roles; whose turn it is not only waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "kernels/cuda/base/program.h"

namespace longview::kernels::cuda::testing {

class EmulatedBarriers {
 public:
  enum Role { kLoader = 0, kGroup = 1 };

  EmulatedBarriers(int count, ThreadOrder order);

  // ---- mbarrier ----

  void Init(int barrier, int arrivals);
  void Arrive(int barrier, int count);
  // The current phase waits for so many bytes more.
  void Expect(int barrier, int bytes);
  // Waits until the phase of that parity is over; the one before the first counts as over.
  void Await(int barrier, uint32_t parity);

  // A copy on its way: `land`, then its bytes and arrivals count on the barrier.
  void AddCopy(int barrier, int bytes, int arrivals, std::function<void()> land);

  // ---- Roles, each in a thread ----

  void Enter(Role role);  // Waits for its turn.
  void Leave();
  // After both: nothing on its way, no phase half done.
  void CheckIdle() const;

 private:
  struct Barrier {
    int arrivals = 0;  // Number of arrivals that ends a phase; 0: not initialised.
    int missing = 0;
    int64_t bytes = 0;  // Expected and not come; below 0: come and not expected.
    uint32_t parity = 0;
  };
  struct Copy {
    int barrier;
    int bytes;
    int arrivals;
    std::function<void()> land;
  };
  struct Waiting {
    bool done = false;
    int barrier = -1;  // -1: can go on.
    uint32_t parity = 0;
  };

  bool CanGoOn(Role role) const;
  bool Over(int barrier, uint32_t parity) const { return barriers_[barrier].parity != parity; }
  void EndPhaseIfDue(Barrier& barrier);
  void LandFirst();
  void GiveWay();  // To the other role; returns in this one's next turn.

  const ThreadOrder order_;
  std::vector<Barrier> barriers_;
  std::deque<Copy> copies_;
  Waiting roles_[2];
  bool broken_ = false;  // Both wait for each other: from here on nobody waits.
  Role turn_;
  std::mutex mutex_;  // Guards turn_; all else belongs to whose turn it is.
  std::condition_variable turned_;
};

}  // namespace longview::kernels::cuda::testing
