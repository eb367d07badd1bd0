// The operations of slices and of places on a device.
#include "kernels/cuda/encoder/encoder_api.h"
#include "models/layers/span_rows.h"
#include "models/ops/device_ops.h"

namespace longview::models {

SlicesRef DeviceOps::Stage(std::span<const kernels::SliceRows> slices,
                           std::span<const uint8_t> visible) {
  return {lists_->Add(slices), lists_->Add(visible), static_cast<int64_t>(slices.size())};
}

void DeviceOps::FillZero(const Rows& rows) const {
  const auto bytes = static_cast<uint64_t>(rows.count * rows.row_bytes());
  device_.Check(device_.api().fill_zero(device_.stream(), rows.data, bytes), "clearing rows");
}

void DeviceOps::Clear(const Rows& rows) {
  Timed(&EncoderTimes::rest, [&] { FillZero(rows); });
}

void DeviceOps::ProjectPlaces(const Weight& weight, const Table* bias, IndexRef entries,
                              const Rows& in, const Rows& out) {
  Timed(&EncoderTimes::linears, [&] {
    MultiplyRows(device_, weight.device, in.data, in.count, out.data);
    const kernels::cuda::PlaceBiases args = {
        out.data, bias ? bias->device() : weight.device.bias, entries.data,
        in.count, static_cast<int32_t>(weight.out),           SpanType(compute())};
    device_.Check(device_.api().encoder.place_bias(device_.stream(), args), "biases of places");
  });
}

void DeviceOps::Scatter(const Rows& from, IndexRef places, const Rows& to) {
  Timed(&EncoderTimes::rest, [&] {
    const kernels::cuda::CopyRows args = {from.data,
                                          to.data,
                                          nullptr,
                                          places.data,
                                          places.count,
                                          static_cast<int32_t>(to.row_bytes()),
                                          from.stride * from.element,
                                          to.stride * to.element};
    device_.Check(device_.api().rows.copy(device_.stream(), args), "scattering rows");
  });
}

void DeviceOps::AddRows(const Rows& in, const Rows& added, IndexRef index, const Rows& out) {
  Timed(&EncoderTimes::rest, [&] {
    const kernels::cuda::AddedRows sums = {in.data,
                                           added.data,
                                           index.data,
                                           out.data,
                                           in.count,
                                           static_cast<int32_t>(in.width),
                                           SpanType(compute())};
    device_.Check(device_.api().encoder.add(device_.stream(), sums), "adding rows");
  });
}

void DeviceOps::PoolSlices(const Rows& from, SlicesRef slices, kernels::SlicePooling pooling,
                           const Rows& out) {
  Timed(&EncoderTimes::attention, [&] {
    const kernels::cuda::PoolSlices args = {from.data,
                                            slices.visible,
                                            slices.data,
                                            static_cast<int32_t>(slices.count),
                                            static_cast<int32_t>(from.width),
                                            pooling == kernels::SlicePooling::kMax ? 1 : 0,
                                            out.data,
                                            SpanType(compute())};
    device_.Check(device_.api().encoder.pool_slices(device_.stream(), args), "pooling slices");
  });
}

PartsRef DeviceOps::Stage(std::span<const kernels::SlicePart> parts) {
  return {lists_->Add(parts), static_cast<int64_t>(parts.size())};
}

void DeviceOps::PoolParts(const Rows& from, PartsRef parts, kernels::SlicePooling pooling,
                          const Rows& sums) {
  Timed(&EncoderTimes::attention, [&] {
    const kernels::cuda::PoolParts args = {from.data,
                                           parts.data,
                                           static_cast<int32_t>(parts.count),
                                           static_cast<int32_t>(from.width),
                                           pooling == kernels::SlicePooling::kMax ? 1 : 0,
                                           sums.floats(),
                                           SpanType(compute())};
    device_.Check(device_.api().encoder.pool_parts(device_.stream(), args), "pooling slices");
  });
}

// The second linear reads what the first one left in scratch, so `out` may be cleared between them.
void DeviceOps::MixSlices(const PlaceMixer& mixer, const Rows& from, SlicesRef slices,
                          const Rows& out) {
  Timed(&EncoderTimes::attention, [&] {
    const kernels::cuda::MixSlices args = {from.data,
                                           slices.visible,
                                           slices.data,
                                           static_cast<int32_t>(slices.count),
                                           static_cast<int32_t>(from.width),
                                           static_cast<int32_t>(mixer.places()),
                                           static_cast<int32_t>(mixer.hidden()),
                                           {mixer.in.device(), mixer.in_bias.device()},
                                           {mixer.out.device(), mixer.out_bias.device()},
                                           reinterpret_cast<float*>(scratch_),
                                           out.data,
                                           SpanType(compute())};
    device_.Check(device_.api().encoder.mix_in(device_.stream(), args), "mixing places");
    FillZero(out);
    device_.Check(device_.api().encoder.mix_out(device_.stream(), args), "mixed places");
  });
}

size_t DeviceCount::SliceBytes(size_t slices, std::span<const uint8_t> visible) const {
  return ListBytes(slices * sizeof(kernels::SliceRows)) + ListBytes(visible.size_bytes());
}

size_t DeviceCount::MixScratch(const PlaceMixer& mixer, const Rows& rows, int64_t slices) const {
  return kernels::AlignUp(static_cast<size_t>(slices * mixer.hidden() * rows.width) *
                          sizeof(float));
}

}  // namespace longview::models
