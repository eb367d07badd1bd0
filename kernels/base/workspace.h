// Scratch memory: asked for first, passed in, never allocated by a kernel.
#pragma once

#include <cstddef>

namespace longview::kernels {

inline constexpr size_t kAlignment = 64;

inline constexpr size_t AlignUp(size_t bytes, size_t to = kAlignment) {
  return (bytes + to - 1) / to * to;
}

// Memory that a call needs. Exact, pure: the same plan and call always give the same numbers.
struct WorkspaceBytes {
  size_t shared = 0;
  size_t per_thread = 0;

  size_t total(int threads) const { return AlignUp(shared) + threads * AlignUp(per_thread); }
};

// Memory for one call, 64-byte aligned, owned by the caller until the call returns.
// Thread t uses thread_base + t * thread_stride.
struct Workspace {
  std::byte* shared = nullptr;
  std::byte* thread_base = nullptr;
  size_t thread_stride = 0;
};

// Lays `bytes` out in one block of bytes.total(threads), itself 64-byte aligned.
inline Workspace CarveWorkspace(void* block, WorkspaceBytes bytes) {
  auto* base = static_cast<std::byte*>(block);
  return {base, base + AlignUp(bytes.shared), AlignUp(bytes.per_thread)};
}

}  // namespace longview::kernels
