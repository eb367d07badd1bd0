// Operations as work for a device's stream: nothing waits, nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/device/device.h"
#include "models/device/device_attention.h"
#include "models/device/device_rows.h"
#include "models/device/device_run.h"
#include "models/device/staged_lists.h"
#include "models/layers/span_rows.h"
#include "models/ops/backend.h"

namespace longview::models {

// Used within a Device::Turn but for staging.
class DeviceBackend final : public Backend {
 public:
  // Counts. `rounds`: as after RoundPlans.
  explicit DeviceBackend(Compute compute, bool rounds = false);
  // Borrows the device.
  DeviceBackend(const Device& device, Compute compute);

  // Sets the memory in which lists are staged; before the first Stage.
  void StageInto(StagedLists& lists) { set_staged(&lists); }
  // Takes need.memory() bytes of `carver` for buffers and scratch; before the first Take, and
  // before pieces are staged.
  void UseMemory(Carver& carver, const ForwardNeed& need);
  // Has plans staged in room for a little more than they are, so that those of neighbouring steps
  // lie alike; before the first Stage.
  void RoundPlans() { rounds_ = true; }
  // Sets the timer that measures the work from now on.
  void set_timer(const DeviceTimer* timer) { timer_ = timer; }

  // ---- For operations ----
  const Device& device() const { return *device_; }
  const kernels::cuda::PluginApi& api() const { return device_->api(); }
  kernels::cuda::Stream* stream() const { return device_->stream(); }
  void Check(kernels::cuda::Status status, const char* what) const { device_->Check(status, what); }
  kernels::DType type() const { return SpanType(compute()); }  // T
  StagedLists& lists() { return *staged(); }
  // Memory that one operation has to itself. Taken before Runs, which says whether it is there.
  Carver Scratch() const { return Carver(scratch_); }
  template <typename Body>
  void Timed(double RunTimes::*sum, Body&& body) const {
    if (timer_ == nullptr) return body();
    timer_->Run(sum, body);
  }
  // The number of a plan among those that were staged.
  int StagePlan(const kernels::Plan& plan);
  const DevicePlan& PlanOf(PlanRef plan) const { return plans_[static_cast<size_t>(plan.staged)]; }
  // Scratch T [rows, weight.out] of a linear's results, with room for the last panel.
  std::byte* TakePanels(const Weight& weight, int64_t rows, Carver& scratch) const;
  // y = in W^T, without the bias.
  void Multiply(const Weight& weight, const Rows& in, void* y) const;
  // out = y + b in fp32, of T [out.count, out.width].
  void Widen(const Weight& weight, const void* y, const Rows& out) const;
  void FillZero(const Rows& rows) const;
  DeviceRows RowsOf(int64_t width) const { return DeviceRows(*device_, compute(), width); }

 private:
  const Device* const device_;  // Null while counting.
  StagedLists counted_lists_{nullptr, nullptr};
  bool rounds_ = false;
  std::vector<DevicePlan> plans_;
  std::byte* scratch_ = nullptr;
  const DeviceTimer* timer_ = nullptr;
};

}  // namespace longview::models
