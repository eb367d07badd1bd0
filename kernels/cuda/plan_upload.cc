#include "kernels/cuda/plan_upload.h"

#include "kernels/base/check.h"

namespace longview::kernels::cuda {

Status PlanUpload::Upload(Stream* stream, const Plan& plan, const PlanCapacity& capacity) {
  KERNEL_CHECK(ImageBytes(capacity) <= upload_.bytes());
  std::byte* image = nullptr;
  if (const Status status = upload_.Begin(&image); status != 0) return status;
  WriteImage(plan, capacity, image);
  if (const Status status = upload_.Send(stream, ImageBytes(capacity)); status != 0) return status;
  view_ = ViewImage(capacity, upload_.device());
  return 0;
}

}  // namespace longview::kernels::cuda
