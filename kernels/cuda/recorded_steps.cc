#include "kernels/cuda/recorded_steps.h"

namespace longview::kernels::cuda {

RecordedSteps::~RecordedSteps() {
  // Recorded steps may still run.
  (void)api_.synchronize(stream_);
  if (buffers_ != nullptr) (void)api_.release(device_, buffers_);
}

Status RecordedSteps::Reserve(size_t list_bytes, size_t buffer_bytes) {
  KERNEL_CHECK(buffers_ == nullptr);
  if (const Status status = upload_.Reserve(list_bytes); status != 0) return status;
  void* buffers = nullptr;
  const Status status = api_.allocate(device_, buffer_bytes, &buffers);
  buffers_ = static_cast<std::byte*>(buffers);
  buffer_bytes_ = buffer_bytes;
  return status;
}

}  // namespace longview::kernels::cuda
