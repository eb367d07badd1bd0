#include <algorithm>
#include <cstring>

#include "kernels/pool/place_mix.h"
#include "models/cst/mix_slices.h"
#include "models/layers/span_rows.h"
#include "models/ops/host_backend.h"

namespace longview::models::ops {
namespace {

// Floats of one thread: the hidden places of a slice, then the mixed ones.
int64_t MixedFloats(const PlaceMixer& mixer, int64_t width) {
  return (mixer.hidden() + mixer.places()) * width;
}

// One slice through both linears. `out` may be `from`: the first linear has read the slice when the
// second writes it.
void MixSlice(const HostBackend& host, const PlaceMixer& mixer, const kernels::SliceRows& slice,
              const uint8_t* visible, const Rows& from, const Rows& out, const float* zeros,
              float* scratch) {
  const int64_t width = from.width;
  const auto hidden = static_cast<int>(mixer.hidden());
  float* between = scratch;
  float* mixed = scratch + hidden * width;
  kernels::PlaceMix mix;
  mix.channels = static_cast<int>(width);
  mix.out_stride = width;
  mix.weights = mixer.in.values();
  mix.bias = mixer.in_bias.values();
  mix.outputs = mix.wanted = hidden;
  mix.rows = from.Row(slice.row0);
  mix.dtype = SpanType(host.compute());
  mix.row_stride = from.stride;
  mix.visible = visible + slice.row0;
  mix.places = slice.rows;
  mix.out = between;
  MixPlaces(mix);
  host.floats().bias_act(between, zeros, hidden * width, Activation::kGelu);
  mix.weights = mixer.out.values();
  mix.bias = mixer.out_bias.values();
  mix.outputs = static_cast<int>(mixer.places());
  mix.wanted = slice.rows;
  mix.rows = between;
  // Hidden places stay fp32 between the linears; only the result is rounded.
  mix.dtype = kernels::DType::kFloat32;
  mix.row_stride = width;
  mix.visible = nullptr;
  mix.places = hidden;
  mix.out = mixed;
  MixPlaces(mix);
  for (int32_t i = 0; i < slice.rows; ++i) {
    host.kernels().narrow(mixed + i * width, width, out.Row(slice.row0 + i));
  }
}

}  // namespace

void MixSlices::OnHost(HostBackend& host) const {
  const int threads = host.threads();
  Carver scratch = host.Scratch();
  float* const mixed = scratch.Take<float>(MixedFloats(mixer, from.width) * threads);
  if (!host.Runs(scratch)) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  const float* zeros = host.Zeros(mixer.hidden() * from.width);
  kernels::RunOnThreads(host.pool(), [&](int thread) {
    float* own = mixed + MixedFloats(mixer, from.width) * thread;
    const int64_t end = slices.count * (thread + 1) / threads;
    for (int64_t s = slices.count * thread / threads; s < end; ++s) {
      MixSlice(host, mixer, slices.data[s], slices.visible, from, out, zeros, own);
    }
  });
  // Rows between slices and behind them.
  int64_t next = 0;
  const auto clear = [&](int64_t end) {
    const int64_t count = std::max<int64_t>(0, end - next);
    std::memset(out.Row(next), 0, static_cast<size_t>(count * out.row_bytes()));
  };
  for (int64_t s = 0; s < slices.count; ++s) {
    clear(slices.data[s].row0);
    next = slices.data[s].row0 + slices.data[s].rows;
  }
  clear(out.count);
}

}  // namespace longview::models::ops
