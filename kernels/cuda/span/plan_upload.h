// One plan at a time in a device's memory: written to pinned memory, copied behind what the stream
// still has to do, read by every layer's kernels.
//
// Two pinned copies take turns, so that the host writes the next plan while the last is still on
// its way; it waits only when both are.
//
// One thread at a time, the stream's.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cuda/plugin_api.h"
#include "kernels/cuda/span/plan_image.h"

namespace longview::kernels::cuda {

class PlanUpload {
 public:
  // Borrows the plugin's table.
  PlanUpload(const PluginApi& api, int32_t device);
  ~PlanUpload();
  PlanUpload(const PlanUpload&) = delete;
  PlanUpload& operator=(const PlanUpload&) = delete;

  // Takes the memory that images of up to `bytes` need, when a model loads. Once.
  Status Reserve(uint64_t bytes);

  // Puts a plan into the image of `capacity`. Kernels that the stream was handed before still read
  // the plan before; those handed over later read this one.
  // REQUIRES: the plan fits the capacity, ImageBytes(capacity) what was reserved.
  Status Upload(Stream* stream, const Plan& plan, const PlanCapacity& capacity);

  // The plan uploaded last. The same capacity gives the same addresses.
  const PlanView& view() const { return view_; }

 private:
  struct Staging {
    void* memory = nullptr;
    Event* sent = nullptr;
    bool under_way = false;
  };

  const PluginApi& api_;
  int32_t device_;
  uint64_t bytes_ = 0;
  void* image_ = nullptr;
  std::array<Staging, 2> staging_;
  int next_ = 0;
  PlanView view_{};
};

}  // namespace longview::kernels::cuda
