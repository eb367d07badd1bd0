#include "models/device/device_attention.h"

#include "absl/strings/str_cat.h"
#include "kernels/span/softmax_state.h"

namespace longview::models {

kernels::cuda::PlanCapacity StagedCapacity(const kernels::Plan& plan, bool rounded) {
  const kernels::cuda::PlanCapacity capacity = kernels::cuda::CapacityOf(plan);
  return rounded ? RoundedUp(capacity) : capacity;
}

DevicePlan StagePlan(const kernels::Plan& plan, StagedLists& lists, bool rounded) {
  if (plan.sources.size() > kernels::cuda::kMaxDeviceSources) {
    throw DeviceError(absl::StrCat("attention over ", plan.sources.size(),
                                   " sources, as many as heads have different dilations and one "
                                   "more; a device takes at most ",
                                   kernels::cuda::kMaxDeviceSources));
  }
  DevicePlan staged;
  staged.capacity = StagedCapacity(plan, rounded);
  const std::byte* image =
      lists.AddBytes(kernels::cuda::ImageBytes(staged.capacity),
                     [&](std::byte* to) { kernels::cuda::WriteImage(plan, staged.capacity, to); });
  if (image != nullptr) staged.view = kernels::cuda::ViewImage(staged.capacity, image);
  return staged;
}

size_t PlanBytes(const kernels::Plan& plan) {
  return kernels::AlignUp(kernels::cuda::ImageBytes(kernels::cuda::CapacityOf(plan)));
}

size_t MaskedPlanBytes(const kernels::Plan& plan) {
  kernels::cuda::PlanCapacity most = kernels::cuda::CapacityOf(plan);
  most.spans = most.intervals = most.valid_words = 0;
  for (const kernels::Tile& tile : plan.tiles) {
    int32_t blocks = 0;
    for (int32_t s = tile.span0; s < tile.span0 + tile.spans; ++s) {
      const kernels::Span& span = plan.spans[s];
      const int32_t last = span.key0 + (span.keys - 1) * span.key_step;
      blocks += last / kernels::kBlockSlots - span.key0 / kernels::kBlockSlots + 1;
    }
    most.spans += blocks;
    most.intervals += blocks * tile.rows;
  }
  // A span has a bias of its own.
  if (most.biases > 0) most.biases = most.spans;
  for (const kernels::SlotMap& source : plan.sources) {
    most.valid_words += source.slots / kernels::kBlockSlots;
  }
  return kernels::AlignUp(kernels::cuda::ImageBytes(most));
}

size_t DevicePartialBytes(const DevicePlan& plan, int Dv) {
  return kernels::PartialBytes(plan.capacity.partial_slots, Dv);
}

void Attend(const Device& device, const DevicePlan& plan, kernels::cuda::SpanCall call,
            void* partials, kernels::cuda::SpanPhase phase) {
  if (plan.empty()) return;
  kernels::cuda::PrepareCall(&call, partials, plan.capacity.partial_slots);
  const kernels::cuda::SpanApi& api = device.api().span;
  const kernels::cuda::SpanKernel kernel =
      kernels::cuda::KernelOf(call, phase, device.warpgroups());
  const kernels::cuda::SpanLaunch launch = kernels::cuda::ShapeLaunch(plan.capacity, call, kernel);
  device.Check(api.forward(device.stream(), &plan.view, &call, &launch), "attention");
  if (launch.merges == 0) return;
  device.Check(api.merge(device.stream(), &plan.view, &call, &launch), "merging attention");
}

}  // namespace longview::models
