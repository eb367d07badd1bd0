#include "kernels/cache/cache_budget.h"

#include <vector>

namespace longview::kernels {

bool CacheBudget::ReleaseIdle(int64_t bytes) {
  for (Member* member : members_) {
    if (HasRoom(bytes)) return true;
    member->ReleaseIdle(bytes - Free());
  }
  return HasRoom(bytes);
}

bool CacheBudget::EvictOldest() {
  Member* oldest = nullptr;
  uint64_t when = kNever;
  for (Member* member : members_) {
    const uint64_t of_member = member->OldestEvictable();
    if (of_member >= when) continue;
    when = of_member;
    oldest = member;
  }
  if (oldest == nullptr) return false;
  oldest->EvictOldest();
  return true;
}

void CacheBudget::AddHeadroom(int64_t bytes) {
  Add(&headroom_, bytes);
  while (!ReleaseIdle(0) && EvictOldest()) {
  }
}

void CacheBudget::Join(Member* member) { members_.push_back(member); }

void CacheBudget::Leave(Member* member) { std::erase(members_, member); }

}  // namespace longview::kernels
