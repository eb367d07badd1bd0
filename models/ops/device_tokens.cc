// Operations of decoders on a device: rows over a KV cache, and the few rows of a decode step.
#include <vector>

#include "kernels/cuda/token/cache_rows.h"
#include "models/layers/span_rows.h"
#include "models/ops/device_ops.h"

namespace longview::models {
namespace {

// Scratch of a linear whose results something is made of.
struct MadeRows {
  std::byte* products = nullptr;  // T [rows, out], with a panel's tail.
  float* sums = nullptr;          // [rows, out]
};

MadeRows CarveMadeRows(const Weight& weight, int64_t rows, Compute compute, Carver& carver) {
  MadeRows made;
  made.products = carver.TakeBytes(
      static_cast<size_t>((rows + kDevicePanelTail) * weight.out * ElementBytes(compute)));
  made.sums = carver.Take<float>(rows * weight.out);
  return made;
}

// Bytes of a linear's results. Panels larger than kDevicePanel are for more rows (device_panels.h).
size_t ProductBytes(const Weight& weight, const Rows& in, Compute compute) {
  const int64_t panels = (in.count + kDevicePanel - 1) / kDevicePanel * kDevicePanel;
  const int64_t rows = in.few ? in.count : panels;
  return kernels::AlignUp(static_cast<size_t>(rows * weight.out * ElementBytes(compute)));
}

}  // namespace

void DeviceOps::Multiply(const Weight& weight, const Rows& in, void* y) const {
  const auto multiply = in.few ? MultiplyFewRows : MultiplyRows;
  multiply(device_, weight.device, in.data, in.count, y);
}

PlacesRef DeviceOps::StagePlaces(const kernels::ProjectionCache* cache,
                                 std::span<const kernels::CachePlace> places) {
  std::vector<kernels::cuda::CacheRowPlace> rows;
  for (const kernels::CachePlace& place : places) {
    rows.push_back(kernels::cuda::PlaceOf(*cache, place));
  }
  return {places, lists_->Add(rows)};
}

void DeviceOps::Store(const StripRef& strip, const Rows& keys, const Rows& values,
                      const PlacesRef& places) {
  const kernels::cuda::StoreRows args = {
      keys.data,
      values.data,
      keys.stride,
      places.device,
      kernels::cuda::RowsOf(*strip.cache, strip.strip, strip.layer),
      keys.count,
      SpanType(compute())};
  device_.Check(device_.api().token.store(device_.stream(), args), "storing keys and values");
}

void DeviceOps::ProjectAdded(const Weight& weight, const Rows& in, const NormWeight& norm,
                             NormPlace place, const Rows& x, const Rows& input) {
  Timed(&EncoderTimes::linears, [&] {
    Multiply(weight, in, scratch_);
    const DeviceRows rows = RowsOf(x.width);
    if (place == NormPlace::kPre) {
      return rows.AddPrenorm(x.floats(), scratch_, weight.device.bias, norm.device, x.count,
                             input.data);
    }
    rows.Add(x.floats(), scratch_, weight.device.bias, &norm.device, x.count,
             input.data == x.data ? nullptr : input.data);
  });
}

void DeviceOps::ProjectActivated(const Weight& weight, Activation activation,
                                 const NormWeight& norm, const Rows& in, const Rows& out) {
  Timed(&EncoderTimes::linears, [&] {
    Carver carver(scratch_);
    const MadeRows made = CarveMadeRows(weight, in.count, compute(), carver);
    Multiply(weight, in, made.products);
    AddBias(device_, weight.device, made.products, in.count, activation);
    const auto bytes = static_cast<uint64_t>(in.count * weight.out) * sizeof(float);
    device_.Check(device_.api().fill_zero(device_.stream(), made.sums, bytes), "zeros");
    RowsOf(weight.out).Add(made.sums, made.products, nullptr, &norm.device, in.count, out.data);
  });
}

void DeviceOps::Widen(const Weight& weight, const void* y, const Rows& out) const {
  const kernels::cuda::WidenRows args = {y,
                                         weight.device.bias,
                                         out.floats(),
                                         out.count,
                                         static_cast<int32_t>(weight.out),
                                         SpanType(compute())};
  device_.Check(device_.api().rows.widen(device_.stream(), args), "widened rows");
}

void DeviceOps::Deliver(const Weight& weight, const Rows& in, const Rows& out,
                        std::span<float* const>) {
  Timed(&EncoderTimes::linears, [&] {
    Multiply(weight, in, scratch_);
    Widen(weight, scratch_, out.First(in.count));
  });
}

void DeviceOps::DeliverAdaptive(const Weight& weight, IndexRef cutoffs, const Rows& in,
                                const Rows& out, std::span<float* const>) {
  Timed(&EncoderTimes::linears, [&] {
    Carver carver(scratch_);
    std::byte* const products = carver.TakeBytes(ProductBytes(weight, in, compute()));
    Rows scores;
    scores.count = in.count;
    scores.data = carver.TakeBytes(static_cast<size_t>(in.count * weight.out) * sizeof(float));
    Multiply(weight, in, products);
    Widen(weight, products, scores);
    const kernels::cuda::AdaptiveRows args = {scores.floats(),
                                              cutoffs.data,
                                              out.floats(),
                                              in.count,
                                              static_cast<int32_t>(weight.out - cutoffs.count),
                                              static_cast<int32_t>(cutoffs.count)};
    device_.Check(device_.api().token.adaptive(device_.stream(), args), "an adaptive softmax");
  });
}

size_t DeviceCount::AdaptiveScratch(const Weight& weight, const Rows& in) const {
  Carver carver(nullptr);
  carver.TakeBytes(ProductBytes(weight, in, compute()));
  carver.TakeBytes(static_cast<size_t>(in.count * weight.out) * sizeof(float));
  return carver.used();
}

size_t DeviceCount::DeliverScratch(const Weight& weight, const Rows& in) const {
  return ProductBytes(weight, in, compute());
}

size_t DeviceCount::MadeScratch(const Weight& weight, const Rows& in) const {
  Carver carver(nullptr);
  CarveMadeRows(weight, in.count, compute(), carver);
  return carver.used();
}

}  // namespace longview::models
