// One plan at a time in a device's memory, read by every layer's kernels.
//
// One thread at a time, the stream's.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/plan_image.h"
#include "kernels/cuda/step_upload.h"

namespace longview::kernels::cuda {

class PlanUpload {
 public:
  // Borrows the plugin's table.
  PlanUpload(const PluginApi& api, int32_t device) : upload_(api, device) {}

  // Takes the memory that images of up to `bytes` need, when a model loads. Once.
  Status Reserve(uint64_t bytes) { return upload_.Reserve(bytes); }

  // Puts a plan into the image of `capacity`. Kernels that the stream was handed before still read
  // the plan before; those handed over later read this one.
  // REQUIRES: the plan fits the capacity, ImageBytes(capacity) what was reserved.
  Status Upload(Stream* stream, const Plan& plan, const PlanCapacity& capacity);

  // The plan uploaded last. The same capacity gives the same addresses.
  const PlanView& view() const { return view_; }

 private:
  StepUpload upload_;
  PlanView view_{};
};

}  // namespace longview::kernels::cuda
