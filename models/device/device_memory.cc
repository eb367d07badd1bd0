#include "models/device/device_memory.h"

#include <algorithm>

#include "kernels/cuda/base/element.h"
#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

constexpr size_t kStagingBytes = size_t{16} << 20;

}  // namespace

template <MemoryPlace kPlace>
MemoryBlock<kPlace>::MemoryBlock(const Device& device, size_t bytes)
    : device_(device), bytes_(bytes) {
  if constexpr (kPlace == MemoryPlace::kDevice) {
    device_.Check(device_.api().allocate(device_.index(), bytes, &data_), "memory");
  } else {
    device_.Check(device_.api().allocate_pinned(bytes, &data_), "pinned memory");
  }
}

template <MemoryPlace kPlace>
MemoryBlock<kPlace>::~MemoryBlock() {
  if constexpr (kPlace == MemoryPlace::kDevice) {
    (void)device_.api().release(device_.index(), data_);
  } else {
    (void)device_.api().release_pinned(data_);
  }
}

template class MemoryBlock<MemoryPlace::kDevice>;
template class MemoryBlock<MemoryPlace::kPinned>;

WeightUpload::WeightUpload(const Device& device)
    : device_(device), staging_(device, kStagingBytes) {}

void WeightUpload::Put(std::span<const float> values, Compute compute, void* to) {
  const auto element = static_cast<size_t>(ElementBytes(compute));
  auto* next = static_cast<std::byte*>(to);
  while (!values.empty()) {
    const size_t count = std::min(values.size(), staging_.bytes() / element);
    for (size_t i = 0; i < count; ++i) {
      kernels::cuda::StoreElement(staging_.data(), SpanType(compute), static_cast<int64_t>(i),
                                  values[i]);
    }
    device_.Check(device_.api().copy_in(device_.stream(), next, staging_.data(), count * element),
                  "weights");
    device_.Wait();
    values = values.subspan(count);
    next += count * element;
  }
}

}  // namespace longview::models
