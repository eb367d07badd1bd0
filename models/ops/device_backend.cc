#include "models/ops/device_backend.h"

#include "kernels/cuda/span/launch_shape.h"

namespace longview::models {

DeviceBackend::DeviceBackend(const Device& device, Compute compute)
    : Backend({compute, kernels::cuda::kDeviceTileRows, kDevicePanelTail, /*zeroes_tails=*/false},
              this, /*counts=*/false, &counted_lists_),
      device_(&device) {}

DeviceBackend::DeviceBackend(Compute compute, bool rounds)
    : Backend({compute, kernels::cuda::kDeviceTileRows, kDevicePanelTail, /*zeroes_tails=*/false},
              this, /*counts=*/true, &counted_lists_),
      device_(nullptr),
      rounds_(rounds) {}

void DeviceBackend::UseMemory(Carver& memory, const ForwardNeed& need) {
  set_memory(memory.TakeBytes(need.buffers));
  scratch_ = memory.TakeBytes(need.scratch);
}

int DeviceBackend::StagePlan(const kernels::Plan& plan) {
  const kernels::cuda::PlanCapacity& c =
      plans_.emplace_back(models::StagePlan(plan, lists(), rounds_)).capacity;
  for (const int32_t number : {c.tiles, c.spans, c.intervals, c.biases, c.items, c.merges,
                               c.sources, c.slot_rows, c.valid_words, c.partial_slots}) {
    lists().Note(number);
  }
  if (counts()) {
    // Beside the plan's own bytes, which the lists count.
    counted().most_lists += MaskedPlanBytes(plan) - kernels::AlignUp(kernels::cuda::ImageBytes(c));
  }
  return static_cast<int>(plans_.size()) - 1;
}

std::byte* DeviceBackend::TakePanels(const Weight& weight, int64_t rows, Carver& scratch) const {
  return scratch.TakeBytes(
      static_cast<size_t>((rows + kDevicePanelTail) * weight.out * ElementBytes(compute())));
}

void DeviceBackend::Multiply(const Weight& weight, const Rows& in, void* y) const {
  const auto multiply = in.few ? MultiplyFewRows : MultiplyRows;
  multiply(*device_, weight.device, in.data, in.count, y);
}

void DeviceBackend::Widen(const Weight& weight, const void* y, const Rows& out) const {
  const kernels::cuda::WidenRows args = {
      y, weight.device.bias, out.floats(), out.count, static_cast<int32_t>(weight.out), type()};
  Check(api().rows.widen(stream(), args), "widened rows");
}

void DeviceBackend::FillZero(const Rows& rows) const {
  const auto bytes = static_cast<uint64_t>(rows.count * rows.row_bytes());
  Check(api().fill_zero(stream(), rows.data, bytes), "clearing rows");
}

}  // namespace longview::models
