// Threads for work that grows with a body: inflating, parsing and writing it. The transport's own
// threads do none of it for long bodies, so that short requests, probes and streams never wait
// behind one.
//
// Long bodies have two threads and very long ones a third of their own: they run one after the
// other, which bounds the memory that parsing takes, and leave the other two to the rest.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/functional/any_invocable.h"

namespace longview::server {

// Thread-safe.
class BodyWorkers {
 public:
  using Task = absl::AnyInvocable<void()>;

  // Largest body, in bytes, that is not worth a change of threads.
  static constexpr size_t kShort = 64 << 10;
  // Bodies above this many bytes have the third thread.
  static constexpr size_t kVeryLong = 2 << 20;

  BodyWorkers();
  // Ends like Stop.
  ~BodyWorkers();

  // Runs `task`, for a body of `bytes`: at once and here if it is short, else soon on a worker;
  // never after Stop. What it throws is dropped with it.
  void Run(size_t bytes, Task task);

  // Drops what waits and returns when nothing runs any more. Idempotent.
  void Stop();

 private:
  struct Pools;
  const std::unique_ptr<Pools> pools_;
};

}  // namespace longview::server
