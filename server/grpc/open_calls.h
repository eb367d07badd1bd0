// The calls that have begun and are not over, so that a stopping server can end them all.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

class ByteCall;

// Thread-safe.
class OpenCalls {
 public:
  void Add(ByteCall* call);
  // The call is about to be deleted, and then, it was.
  void Remove(ByteCall* call);
  void Deleted();

  // Ends every call with `status` as soon as it may.
  void EndAll(const absl::Status& status);

  // Returns when none is left, nor being deleted: a call that was ended waits for what was begun
  // for it.
  void AwaitNone();

 private:
  absl::Mutex mutex_;
  absl::flat_hash_set<ByteCall*> calls_ ABSL_GUARDED_BY(mutex_);
  int removed_ ABSL_GUARDED_BY(mutex_) = 0;  // Not deleted yet.
};

}  // namespace longview::server
