#include "kernels/cuda/step_upload.h"

#include "kernels/base/check.h"

namespace longview::kernels::cuda {

StepUpload::~StepUpload() {
  for (const Staging& staging : staging_) {
    if (staging.under_way) api_.synchronize_event(staging.sent);
    if (staging.sent != nullptr) api_.destroy_event(staging.sent);
    if (staging.memory != nullptr) api_.release_pinned(staging.memory);
  }
  if (memory_ != nullptr) api_.release(device_, memory_);
}

Status StepUpload::Reserve(uint64_t bytes) {
  KERNEL_CHECK(memory_ == nullptr && bytes > 0);
  if (const Status status = api_.allocate(device_, bytes, &memory_); status != 0) return status;
  for (Staging& staging : staging_) {
    if (const Status status = api_.allocate_pinned(bytes, &staging.memory); status != 0) {
      return status;
    }
    if (const Status status = api_.create_event(device_, &staging.sent); status != 0) return status;
  }
  bytes_ = bytes;
  return 0;
}

Status StepUpload::Begin(std::byte** host) {
  Staging& staging = staging_[next_];
  if (staging.under_way) {
    if (const Status status = api_.synchronize_event(staging.sent); status != 0) return status;
    staging.under_way = false;
  }
  *host = static_cast<std::byte*>(staging.memory);
  return 0;
}

Status StepUpload::Send(Stream* stream, uint64_t bytes) {
  KERNEL_CHECK(bytes <= bytes_);
  Staging& staging = staging_[next_];
  if (const Status status = api_.copy_in(stream, memory_, staging.memory, bytes); status != 0) {
    return status;
  }
  if (const Status status = api_.record(stream, staging.sent); status != 0) return status;
  staging.under_way = true;
  next_ ^= 1;
  return 0;
}

}  // namespace longview::kernels::cuda
