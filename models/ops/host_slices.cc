// The operations of slices and of places on the host.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/pool/place_mix.h"
#include "models/layers/panels.h"
#include "models/layers/span_rows.h"
#include "models/ops/host_ops.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

// Floats of one thread: the hidden places of a slice, then the mixed ones.
int64_t MixedFloats(const PlaceMixer& mixer, int64_t width) {
  return (mixer.hidden() + mixer.places()) * width;
}

}  // namespace

void HostOps::ProjectPlaces(const Weight& weight, const Table* bias, IndexRef entries,
                            const Rows& in, const Rows& out) {
  const DenseLayer& layer = *weight.host;
  const float* values = bias != nullptr ? bias->values() : layer.bias.data();
  ForEachRow(layer, in.data, in.count, layer.linear.sizes(), *context_.pool, times_,
             [&](int64_t row, std::byte* y) {
               const int32_t entry = entries.data[row];
               if (entry < 0) {
                 std::memset(out.Row(row), 0, static_cast<size_t>(out.row_bytes()));
               } else {
                 kernels_.bias_copy(y, values + entry * weight.out, weight.out, out.Row(row));
               }
             });
}

void HostOps::Scatter(const Rows& from, IndexRef places, const Rows& to) {
  const auto bytes = static_cast<size_t>(to.row_bytes());
  Each(places.count, [&](long i) {
    if (places.data[i] >= 0) std::memcpy(to.Row(places.data[i]), from.Row(i), bytes);
  });
}

void HostOps::Clear(const Rows& rows) {
  const auto bytes = static_cast<size_t>(rows.row_bytes());
  Each(rows.count, [&](long i) { std::memset(rows.Row(i), 0, bytes); });
}

// Sums are fp32: rows of another type are widened once, not for every row that adds them.
void HostOps::AddRows(const Rows& in, const Rows& added, IndexRef index, const Rows& out) {
  const float* zeros = Zeros(in.width);
  const float* sums = added.floats();
  if (compute() != Compute::kFp32) {
    float* wide = reinterpret_cast<float*>(scratch_);
    Each(added.count, [&](long i) {
      kernels_.bias_widen(added.Row(i), zeros, added.width, wide + i * added.width);
    });
    sums = wide;
  }
  Each(in.count, [&](long i) {
    const int32_t row = index.data[i];
    kernels_.bias_copy(in.Row(i), row < 0 ? zeros : sums + row * in.width, in.width, out.Row(i));
  });
}

void HostOps::PoolSlices(const Rows& from, SlicesRef slices, kernels::SlicePooling pooling,
                         const Rows& out) {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  const bool narrows = compute() != Compute::kFp32;
  float* pooled = narrows ? reinterpret_cast<float*>(scratch_) : out.floats();
  pieces_.clear();
  for (int64_t s = 0; s < slices.count; ++s) {
    const kernels::SliceRows& slice = slices.data[s];
    pieces_.push_back({slice.row0, slice.rows, true, slice.visible, pooled + s * out.width});
  }
  RunPool(from, pooling, slices.visible);
  if (!narrows) return;
  Each(slices.count,
       [&](long s) { kernels_.narrow(pooled + s * out.width, out.width, out.Row(s)); });
}

void HostOps::PoolParts(const Rows& from, PartsRef parts, kernels::SlicePooling pooling,
                        const Rows& sums) {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  pieces_.clear();
  for (int64_t i = 0; i < parts.count; ++i) {
    const kernels::SlicePart& part = parts.data[i];
    pieces_.push_back(
        {part.row0, part.rows, part.begins != 0, part.divisor, sums.floats() + i * sums.width});
  }
  RunPool(from, pooling, nullptr);
}

// Pools pieces_.
void HostOps::RunPool(const Rows& from, kernels::SlicePooling pooling, const uint8_t* visible) {
  kernels::SlicePoolCall call;
  call.pooling = pooling;
  call.rows = from.data;
  call.dtype = SpanType(compute());
  call.row_stride = from.stride;
  call.channels = static_cast<int>(from.width);
  call.visible = visible;
  call.pieces = pieces_;
  kernels::PoolSlices(call, *context_.pool);
}

// One slice through both linears. `out` may be `from`: the first linear has read the slice when the
// second writes it.
void HostOps::MixSlice(const PlaceMixer& mixer, const kernels::SliceRows& slice,
                       const uint8_t* visible, const Rows& from, const Rows& out,
                       float* scratch) const {
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
  mix.dtype = SpanType(compute());
  mix.row_stride = from.stride;
  mix.visible = visible + slice.row0;
  mix.places = slice.rows;
  mix.out = between;
  MixPlaces(mix);
  floats_.bias_act(between, zeros_.data(), hidden * width, Activation::kGelu);
  mix.weights = mixer.out.values();
  mix.bias = mixer.out_bias.values();
  mix.outputs = static_cast<int>(mixer.places());
  mix.wanted = slice.rows;
  mix.rows = between;
  mix.dtype = kernels::DType::kFloat32;
  mix.row_stride = width;
  mix.visible = nullptr;
  mix.places = hidden;
  mix.out = mixed;
  MixPlaces(mix);
  for (int32_t i = 0; i < slice.rows; ++i) {
    kernels_.narrow(mixed + i * width, width, out.Row(slice.row0 + i));
  }
}

void HostOps::MixSlices(const PlaceMixer& mixer, const Rows& from, SlicesRef slices,
                        const Rows& out) {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  (void)Zeros(mixer.hidden() * from.width);
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* scratch = reinterpret_cast<float*>(scratch_) + MixedFloats(mixer, from.width) * thread;
    const int64_t end = slices.count * (thread + 1) / threads;
    for (int64_t s = slices.count * thread / threads; s < end; ++s) {
      MixSlice(mixer, slices.data[s], slices.visible, from, out, scratch);
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

size_t HostCount::AddRowsScratch(const Rows& added) const {
  if (compute() == Compute::kFp32) return 0;
  return static_cast<size_t>(added.count * added.width) * sizeof(float);
}

size_t HostCount::PoolSlicesScratch(const Rows& out) const { return AddRowsScratch(out); }

size_t HostCount::MixScratch(const PlaceMixer& mixer, const Rows& rows, int64_t) const {
  return static_cast<size_t>(MixedFloats(mixer, rows.width) * context_.pool->threads()) *
         sizeof(float);
}

}  // namespace longview::models
