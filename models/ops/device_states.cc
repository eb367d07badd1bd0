// Operations on the states of sequences, on a device.
#include <vector>

#include "kernels/cuda/token/cache_rows.h"
#include "models/layers/span_rows.h"
#include "models/ops/device_ops.h"

namespace longview::models {

StatesRef DeviceOps::Stage(std::span<const kernels::StateRow> rows) {
  return {lists_->Add(rows), static_cast<int64_t>(rows.size())};
}

OuterRef DeviceOps::Stage(std::span<const kernels::OuterSequence> sequences) {
  std::vector<kernels::cuda::DeviceOuterSequence> staged;
  for (const kernels::OuterSequence& from : sequences) {
    staged.push_back({from.row0, from.tokens, from.before, from.rows, from.packed, from.state});
  }
  return {sequences, lists_->Add(staged)};
}

void DeviceOps::Load(const StripRef& strip, const PlacesRef& places, const Rows& keys) {
  Timed(&EncoderTimes::rest, [&] {
    const kernels::cuda::LoadRows args = {
        keys.data,
        keys.stride,
        places.device,
        kernels::cuda::RowsOf(*strip.cache, strip.strip, strip.layer),
        static_cast<int64_t>(places.host.size()),
        SpanType(compute())};
    device_.Check(device_.api().token.load(device_.stream(), args), "loading keys");
  });
}

void DeviceOps::CopyStates(const Rows& rows, StatesRef states, int64_t shift, bool stores) const {
  Timed(&EncoderTimes::rest, [&] {
    const bool floats = rows.element == sizeof(float);
    const kernels::cuda::StateRows args = {
        states.data,    shift,
        rows.data,      rows.stride,
        states.count,   static_cast<int32_t>(rows.width),
        stores ? 1 : 0, floats ? kernels::DType::kFloat32 : SpanType(compute())};
    device_.Check(device_.api().token.states(device_.stream(), args), "states of sequences");
  });
}

void DeviceOps::LoadStates(StatesRef states, int64_t shift, const Rows& rows) {
  CopyStates(rows, states, shift, /*stores=*/false);
}

void DeviceOps::StoreStates(const Rows& rows, StatesRef states, int64_t shift) {
  CopyStates(rows, states, shift, /*stores=*/true);
}

void DeviceOps::AppendOuter(const OuterArgs& args) {
  Timed(&EncoderTimes::attention, [&] {
    const kernels::cuda::AppendOuterRows rows = {args.q.floats(),
                                                 args.k.floats(),
                                                 args.v.floats(),
                                                 args.g.floats(),
                                                 args.q.stride,
                                                 args.out.floats(),
                                                 args.out.stride,
                                                 args.heads,
                                                 static_cast<int32_t>(args.q.width / args.heads),
                                                 OuterScale(args),
                                                 args.activation,
                                                 args.sequences.device,
                                                 static_cast<int32_t>(args.sequences.host.size())};
    device_.Check(device_.api().outer.append(device_.stream(), rows), "running sums");
  });
}

void DeviceOps::PackOuter(const Rows& rows, float* packed) {
  Timed(&EncoderTimes::rest, [&] {
    const kernels::cuda::PackedOuterRows args = {
        rows.floats(), packed, static_cast<int32_t>(rows.count), static_cast<int32_t>(rows.width)};
    device_.Check(device_.api().outer.pack(device_.stream(), args), "packing rows");
  });
}

}  // namespace longview::models
