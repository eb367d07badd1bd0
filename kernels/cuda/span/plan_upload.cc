#include "kernels/cuda/span/plan_upload.h"

#include "kernels/base/check.h"

namespace longview::kernels::cuda {

PlanUpload::PlanUpload(const PluginApi& api, int32_t device) : api_(api), device_(device) {}

PlanUpload::~PlanUpload() {
  for (const Staging& staging : staging_) {
    if (staging.under_way) api_.synchronize_event(staging.sent);
    if (staging.sent != nullptr) api_.destroy_event(staging.sent);
    if (staging.memory != nullptr) api_.release_pinned(staging.memory);
  }
  if (image_ != nullptr) api_.release(device_, image_);
}

Status PlanUpload::Reserve(uint64_t bytes) {
  KERNEL_CHECK(image_ == nullptr && bytes > 0);
  if (const Status status = api_.allocate(device_, bytes, &image_); status != 0) return status;
  for (Staging& staging : staging_) {
    if (const Status status = api_.allocate_pinned(bytes, &staging.memory); status != 0) {
      return status;
    }
    if (const Status status = api_.create_event(device_, &staging.sent); status != 0) return status;
  }
  bytes_ = bytes;
  return 0;
}

Status PlanUpload::Upload(Stream* stream, const Plan& plan, const PlanCapacity& capacity) {
  const uint64_t bytes = ImageBytes(capacity);
  KERNEL_CHECK(bytes <= bytes_);
  Staging& staging = staging_[next_];
  if (staging.under_way) {
    if (const Status status = api_.synchronize_event(staging.sent); status != 0) return status;
    staging.under_way = false;
  }
  WriteImage(plan, capacity, staging.memory);
  if (const Status status = api_.copy_in(stream, image_, staging.memory, bytes); status != 0) {
    return status;
  }
  if (const Status status = api_.record(stream, staging.sent); status != 0) return status;
  staging.under_way = true;
  next_ ^= 1;
  view_ = ViewImage(capacity, image_);
  return 0;
}

}  // namespace longview::kernels::cuda
