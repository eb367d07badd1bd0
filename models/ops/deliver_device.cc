#include "models/ops/deliver.h"
#include "models/ops/device_backend.h"

namespace longview::models::ops {
namespace {

// Bytes of a linear's results. Panels larger than kDevicePanel are for more rows (device_panels.h).
size_t ProductBytes(const Weight& weight, const Rows& in, Compute compute) {
  const int64_t panels = (in.count + kDevicePanel - 1) / kDevicePanel * kDevicePanel;
  const int64_t rows = in.few ? in.count : panels;
  return kernels::AlignUp(static_cast<size_t>(rows * weight.out * ElementBytes(compute)));
}

}  // namespace

void Deliver::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  std::byte* const products = scratch.TakeBytes(ProductBytes(weight, in, device.compute()));
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::linears, [&] {
    device.Multiply(weight, in, products);
    device.Widen(weight, products, out.First(in.count));
  });
}

void DeliverAdaptive::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  std::byte* const products = scratch.TakeBytes(ProductBytes(weight, in, device.compute()));
  float* const wide = scratch.Take<float>(in.count * weight.out);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::linears, [&] {
    Rows scores;
    scores.count = in.count;
    scores.data = reinterpret_cast<std::byte*>(wide);
    device.Multiply(weight, in, products);
    device.Widen(weight, products, scores);
    const kernels::cuda::AdaptiveRows args = {scores.floats(),
                                              cutoffs.data,
                                              out.floats(),
                                              in.count,
                                              static_cast<int32_t>(weight.out - cutoffs.count),
                                              static_cast<int32_t>(cutoffs.count)};
    device.Check(device.api().token.adaptive(device.stream(), args), "an adaptive softmax");
  });
}

}  // namespace longview::models::ops
