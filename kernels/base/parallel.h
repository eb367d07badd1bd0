// How kernels get threads: from their caller. Kernels own none.
#pragma once

#include <type_traits>

namespace longview::kernels {

// A borrowed callable `void(void* context, int thread)`; cheap to copy, never owns.
using ThreadBody = void (*)(void* context, int thread);

// Runs a body once on each of `threads` threads and returns when all are done.
//
// `models` builds one on at::parallel_for; tests use SerialFor. A body must not throw.
// Thread indices are 0 .. threads-1, each used exactly once per call.
class ParallelFor {
 public:
  virtual ~ParallelFor() = default;
  virtual int threads() const = 0;
  virtual void Run(ThreadBody body, void* context) const = 0;
};

// Runs everything on the calling thread.
class SerialFor final : public ParallelFor {
 public:
  int threads() const override { return 1; }
  void Run(ThreadBody body, void* context) const override { body(context, 0); }
};

// Calls `body(int thread)` on every thread of `pool`. The callable is borrowed for the call.
template <typename Body>
void RunOnThreads(const ParallelFor& pool, Body&& body) {
  auto trampoline = [](void* context, int thread) {
    (*static_cast<std::remove_reference_t<Body>*>(context))(thread);
  };
  pool.Run(trampoline, &body);
}

}  // namespace longview::kernels
