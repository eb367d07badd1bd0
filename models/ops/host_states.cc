// Operations on the states of sequences, on the host.
#include <cstring>

#include "models/ops/host_ops.h"

namespace longview::models {
namespace {

kernels::OuterCall OuterCallOf(const OuterArgs& args) {
  kernels::OuterCall call;
  call.q = args.q.floats();
  call.k = args.k.floats();
  call.v = args.v.floats();
  call.g = args.g.floats();
  call.row_stride = args.q.stride;
  call.out = args.out.floats();
  call.out_stride = args.out.stride;
  call.heads = args.heads;
  call.width = static_cast<int>(args.q.width / args.heads);
  call.scale = OuterScale(args);
  call.activation = args.activation;
  call.sequences = args.sequences.host;
  return call;
}

}  // namespace

void HostOps::Load(const StripRef& strip, const PlacesRef& places, const Rows& keys) {
  std::vector<float> row(static_cast<size_t>(keys.width));
  for (size_t i = 0; i < places.host.size(); ++i) {
    if (places.host[i].block < 0) continue;
    strip.cache->ReadKeys(strip.layer, places.host[i], row.data());
    kernels_.narrow(row.data(), keys.width, keys.Row(static_cast<int64_t>(i)));
  }
}

void HostOps::LoadStates(StatesRef states, int64_t shift, const Rows& rows) {
  const RowKernels& kernels = rows.element == sizeof(float) ? floats_ : kernels_;
  Each(states.count, [&](long i) {
    const kernels::StateRow& at = states.data[i];
    kernels.narrow(at.state + shift, rows.width, rows.Row(at.row));
  });
}

void HostOps::StoreStates(const Rows& rows, StatesRef states, int64_t shift) {
  const RowKernels& kernels = rows.element == sizeof(float) ? floats_ : kernels_;
  const float* zeros = Zeros(rows.width);
  Each(states.count, [&](long i) {
    const kernels::StateRow& at = states.data[i];
    kernels.bias_widen(rows.Row(at.row), zeros, rows.width, at.state + shift);
  });
}

void HostOps::AppendOuter(const OuterArgs& args) {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  const kernels::OuterCall call = OuterCallOf(args);
  kernels::AppendOuter(call, kernels::CarveWorkspace(scratch_, MeasureOuter(call)), *context_.pool,
                       kernels::BestFloatIsa());
}

// Heads lie one behind the other, as channels do.
void HostOps::PackOuter(const Rows& rows, float* packed) {
  kernels::PackOuterRows(rows.floats(), 1, static_cast<int>(rows.width),
                         static_cast<int>(rows.count), packed);
}

size_t HostCount::OuterScratch(const OuterArgs& args) const {
  return MeasureOuter(OuterCallOf(args)).total(context_.pool->threads());
}

}  // namespace longview::models
