#include "kernels/cache/cache_budget.h"

#include <algorithm>

namespace longview::kernels {

bool CacheBudget::MakeRoom(int64_t bytes) {
  while (true) {
    for (Member* member : members_) {
      if (Free() >= bytes) return true;
      member->ReleaseIdle(bytes - Free());
    }
    if (Free() >= bytes) return true;
    Member* oldest = nullptr;
    uint64_t when = kNever;
    for (Member* member : members_) {
      const uint64_t of_member = member->OldestEvictable();
      if (of_member < when) {
        when = of_member;
        oldest = member;
      }
    }
    if (oldest == nullptr) return false;
    oldest->EvictOldest();
  }
}

void CacheBudget::Join(Member* member) { members_.push_back(member); }

void CacheBudget::Leave(Member* member) { std::erase(members_, member); }

}  // namespace longview::kernels
