#include "kernels/cache/cache_memory.h"

namespace longview::kernels {

bool CacheMemory::ReleaseIdle(int64_t bytes) {
  for (Member* member : members_) {
    if (Free() >= bytes) return true;
    member->ReleaseIdle(bytes - Free());
  }
  return Free() >= bytes;
}

bool CacheMemory::EvictOldest() {
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

void CacheMemory::AddHeadroom(int64_t bytes) {
  Add(&headroom_, bytes);
  while (!ReleaseIdle(0) && EvictOldest()) {
  }
}

}  // namespace longview::kernels
