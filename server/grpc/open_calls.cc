#include "server/grpc/open_calls.h"

#include <vector>

#include "server/exception_guard.h"
#include "server/grpc/byte_call.h"
#include "server/status_map_grpc.h"

namespace longview::server {

void OpenCalls::Add(ByteCall* call) {
  absl::MutexLock lock(&mutex_);
  calls_.insert(call);
}

void OpenCalls::Remove(ByteCall* call) {
  absl::MutexLock lock(&mutex_);
  calls_.erase(call);
  ++removed_;
}

void OpenCalls::Deleted() {
  absl::MutexLock lock(&mutex_);
  --removed_;
}

void OpenCalls::EndAll(const absl::Status& status) {
  std::vector<ByteCall*> held;
  {
    absl::MutexLock lock(&mutex_);
    held.reserve(calls_.size());  // Nothing throws between a hold and its end.
    for (ByteCall* const call : calls_) {
      if (call->TryHold()) held.push_back(call);
    }
  }
  for (ByteCall* const call : held) {
    // Every call is told a delay of its own.
    const absl::Status ended = Guarded([&] {
      call->EndNow(ToGrpcStatus(status));
      return absl::OkStatus();
    });
    call->Drop();
    // The library cuts the call later where there was no memory to end it.
    ended.IgnoreError();
  }
}

void OpenCalls::AwaitNone() {
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return calls_.empty() && removed_ == 0;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&none));
}

}  // namespace longview::server
