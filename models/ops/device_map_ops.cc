#include "models/ops/device_map_ops.h"

#include <stdexcept>

#include "models/device/device_linear.h"
#include "models/device/device_rows.h"
#include "models/layers/span_rows.h"
#include "models/ops/weight_placer.h"

namespace longview::models {
namespace {

[[noreturn]] void NoSlices() { throw std::logic_error("maps on a device are never in slices"); }
}  // namespace

int64_t DeviceMapOps::input_tail() const { return kDevicePanelTail; }
int64_t DeviceMapOps::output_tail() const { return kDevicePanelTail; }

std::byte* DeviceMapOps::Panels(int64_t rows, int64_t columns, Carver& carver) const {
  const int64_t padded = rows == 0 ? 0 : rows + kDevicePanelTail;
  return carver.TakeBytes(static_cast<size_t>(padded * columns * ElementBytes(compute_)));
}

int64_t DeviceMapOps::BiasFloats(const std::vector<MapBias>& maps, int heads) const {
  int64_t entries = 0;
  for (const MapBias& map : maps) entries += static_cast<int64_t>(map.rows.size());
  return entries * heads;
}

LongShortRows DeviceMapOps::CarveLongShort(int64_t count, int64_t width, int64_t columns,
                                           bool one_product, Carver& carver) const {
  const auto typed = [&](int64_t columns_of) {
    Rows rows;
    rows.count = count;
    rows.width = rows.stride = columns_of;
    rows.element = ElementBytes(compute_);
    rows.data = Panels(count, columns_of, carver);
    return rows;
  };
  LongShortRows rows;
  if (one_product) {
    const Rows all = typed(3 * width + columns);
    rows.q = all.Columns(0, width);
    rows.own_keys = all.Columns(width, width);
    rows.own_values = all.Columns(2 * width, width);
  } else {
    rows.q = typed(width);
  }
  rows.keys = typed(width);
  rows.values = typed(width);
  return rows;
}

void DeviceMapOps::CopyTyped(const void* in, void* out, const int32_t* from, const int32_t* to,
                             int64_t rows, int64_t width) const {
  const int64_t bytes = width * ElementBytes(compute_);
  const kernels::cuda::CopyRows args = {in,    out,  from, to, rows, static_cast<int32_t>(bytes),
                                        bytes, bytes};
  device_->Check(device_->api().rows.copy(device_->stream(), args), "copying rows");
}

void DeviceMapOps::MakeTokens(const TokenArgs& args) {
  const StagedTokens& staged = tokens_[static_cast<size_t>(args.tokens.staged)];
  const TokenMaps& from = *args.tokens.maps;
  const int64_t taps = int64_t{from.side} * from.side;
  const int64_t in =
      from.before.empty() ? WeightPlacer::PixelColumns(taps * from.channels) : taps * from.channels;
  Carver scratch = BeginScratch();
  std::byte* const patches = Panels(staged.tokens, in, scratch);
  std::byte* const made = Panels(staged.tokens, args.x.width, scratch);
  if (!Runs(scratch)) {
    counted().linear += static_cast<double>(staged.tokens * in * args.x.width);
    counted().rows += 2 * args.x.elements();
    return;
  }
  Timed(&EncoderTimes::linears, [&] {
    if (from.before.empty()) {
      const auto count = static_cast<int32_t>(from.images.size());
      const kernels::cuda::PixelPatches pixels = {
          staged.pixels, staged.pictures,   count,
          staged.most,   from.channels,     from.side,
          from.stride,   from.padding,      static_cast<int32_t>(in),
          patches,       SpanType(compute_)};
      device_->Check(maps().patches(device_->stream(), pixels), "patches of pixels");
    } else {
      const kernels::cuda::MapTaps rows = {args.before.floats(), staged.taps,   patches,
                                           staged.tokens * taps, from.channels, SpanType(compute_)};
      device_->Check(maps().taps(device_->stream(), rows), "patches of a map");
    }
    const DeviceLinear& linear = args.weight->device;
    MultiplyRows(*device_, linear, patches, staged.tokens, made);
    const kernels::cuda::MapTokens tokens = {
        made,
        linear.bias,
        args.norm != nullptr ? args.norm->device.view() : kernels::cuda::RowNorm{},
        staged.rows,
        staged.down,
        staged.across,
        staged.down_rows,
        staged.across_rows,
        args.x.floats(),
        staged.tokens,
        static_cast<int32_t>(args.x.width),
        SpanType(compute_)};
    device_->Check(maps().tokens(device_->stream(), tokens), "tokens of a map");
  });
}

void DeviceMapOps::Planes(const TokensRef& tokens, const PlanesRef& wanted, const Rows& x,
                          float* results) {
  const StagedPlanes& staged = planes_[static_cast<size_t>(wanted.staged)];
  if (device_ == nullptr || staged.count == 0) return;
  Timed(&EncoderTimes::rest, [&] {
    const kernels::cuda::MapPlanes args = {
        x.floats(),    tokens_[static_cast<size_t>(tokens.staged)].rows,
        staged.images, staged.count,
        staged.most,   static_cast<int32_t>(x.width),
        results};
    device_->Check(maps().planes(device_->stream(), args), "feature maps");
  });
}

void DeviceMapOps::Convolve(const ConvolveArgs& args) {
  const StagedNeighbours& staged = neighbours_[static_cast<size_t>(args.maps.staged)];
  const Weight& pointwise = args.layer->pointwise;
  const Rows& out = args.out;
  const bool widens = out.element != ElementBytes(compute_);
  Carver scratch = BeginScratch();
  std::byte* const gathered = Panels(out.count, pointwise.in, scratch);
  std::byte* const made = Panels(widens ? out.count : 0, pointwise.out, scratch);
  if (!Runs(scratch)) {
    counted().linear += static_cast<double>(out.count * pointwise.in * pointwise.out);
    counted().rows += static_cast<double>(out.count * kDepthwiseTaps * pointwise.in);
    counted().rows += out.elements();
    return;
  }
  Timed(&EncoderTimes::linears, [&] {
    const kernels::cuda::DepthwiseRows rows = {
        args.from.data, staged.taps, args.layer->taps.device(),          args.layer->bias.device(),
        gathered,       out.count,   static_cast<int32_t>(pointwise.in), SpanType(compute_)};
    device_->Check(maps().depthwise(device_->stream(), rows), "a depthwise convolution");
    if (widens) {
      MultiplyRows(*device_, pointwise.device, gathered, out.count, made);
      const kernels::cuda::WidenRows wide = {made,
                                             pointwise.device.bias,
                                             out.floats(),
                                             out.count,
                                             static_cast<int32_t>(pointwise.out),
                                             SpanType(compute_)};
      return device_->Check(device_->api().rows.widen(device_->stream(), wide), "widened rows");
    }
    ApplyLinear(*device_, pointwise.device, gathered, out.count, out.data);
    if (args.copies_globals) {
      CopyTyped(args.from.data, out.data, staged.globals, staged.globals, staged.global_count,
                out.width);
    }
  });
}

void DeviceMapOps::NormRows(const Rows& rows, const NormWeight& norm) {
  Carver scratch = BeginScratch();
  float* const sums = scratch.Take<float>(rows.count * rows.width);
  if (!Runs(scratch)) {
    counted().rows += rows.elements();
    return;
  }
  Timed(&EncoderTimes::rest, [&] {
    const auto bytes = static_cast<uint64_t>(rows.count * rows.width) * sizeof(float);
    device_->Check(device_->api().fill_zero(device_->stream(), sums, bytes), "zeros");
    DeviceRows(*device_, compute_, rows.width)
        .Add(sums, rows.data, nullptr, &norm.device, rows.count, rows.data);
  });
}

// Means with equal weights: scores of zero.
void DeviceMapOps::Means(const MeansRef& means, const Rows& x, const NormWeight* norm,
                         float* results) {
  const StagedPieces& staged = means_[static_cast<size_t>(means.staged)];
  const int64_t width = x.width;
  Carver scratch = BeginScratch();
  float* const normed = norm == nullptr ? x.floats() : scratch.Take<float>(staged.rows * width);
  float* const scores = scratch.Take<float>(staged.rows);
  kernels::cuda::PoolSums sums = {};
  sums.m = scratch.Take<float>(staged.count);
  sums.s = scratch.Take<float>(staged.count);
  sums.sums = scratch.Take<float>(staged.count * width);
  if (!Runs(scratch)) {
    counted().rows += x.elements();
    return;
  }
  Timed(&EncoderTimes::rest, [&] {
    if (norm != nullptr) {
      DeviceRows(*device_, Compute::kFp32, width)
          .Prenorm(x.floats(), norm->device, staged.rows, normed);
    }
    device_->Check(device_->api().fill_zero(device_->stream(), scores,
                                            static_cast<uint64_t>(staged.rows) * sizeof(float)),
                   "equal weights");
    const auto columns = static_cast<int32_t>(width);
    const kernels::cuda::PoolPieces pieces = {{scores, 1, 1, 1, nullptr},
                                              {normed, width, 0, columns, kernels::DType::kFloat32},
                                              staged.pieces,
                                              staged.count,
                                              sums};
    device_->Check(device_->api().pool.pieces(device_->stream(), pieces), "means of tokens");
    const kernels::cuda::PoolMerge merge = {
        sums, staged.piece0, static_cast<int32_t>(means.images.size()), 1, columns, results};
    device_->Check(device_->api().pool.merge(device_->stream(), merge), "merging means");
  });
}

void DeviceMapOps::Biases(const BiasRef& biases, const Table& learned, int block, float* memory,
                          std::vector<kernels::Table>& tables) {
  const StagedBiases& staged = biases_[static_cast<size_t>(biases.staged)];
  kernels::Table& table = tables.emplace_back();
  table.data = memory;
  table.entries = static_cast<int32_t>(staged.entries);
  table.head_stride = staged.entries;
  if (device_ == nullptr) return;
  Timed(&EncoderTimes::attention, [&] {
    for (const StagedBias& map : staged.maps) {
      const float* values =
          map.learned.empty() ? learned.device() : map.learned[static_cast<size_t>(block)];
      const kernels::cuda::BiasTable args = {values,        map.learned_entries, map.entries,
                                             map.count,     staged.heads,        memory + map.first,
                                             staged.entries};
      device_->Check(maps().bias_table(device_->stream(), args), "biases of a map");
    }
  });
}

void DeviceMapOps::SumPositions(const PositionSumArgs& args) {
  const int64_t d = args.from_keys.width, f = args.keys->width();
  if (device_ == nullptr) {
    counted().attention += 2.0 * static_cast<double>(args.from_keys.count * d * f);
    return;
  }
  Timed(&EncoderTimes::attention, [&] {
    for (int part = 0; part < 2; ++part) {
      const Rows& from = part == 0 ? args.from_keys : args.from_values;
      const kernels::cuda::PositionSums sums = {from.data,
                                                from.stride,
                                                (part == 0 ? args.keys : args.values)->device(),
                                                args.begins.data,
                                                static_cast<int32_t>(args.images.size()),
                                                args.images[0].rows,
                                                static_cast<int32_t>(f),
                                                static_cast<int32_t>(d),
                                                Column(args.out.data, part * d, compute_),
                                                2 * d,
                                                SpanType(compute_)};
      device_->Check(maps().position_sums(device_->stream(), sums), "keys over positions");
    }
  });
}

void DeviceMapOps::ReduceMaps(const ReductionArgs& args) {
  const MapReduction& from = *args.maps.maps;
  const StagedReduction& staged = reductions_[static_cast<size_t>(args.maps.staged)];
  const int64_t d = args.from.width, taps = int64_t{from.side} * from.side;
  const auto images = static_cast<int32_t>(from.images.size());
  Carver scratch = BeginScratch();
  std::byte* const patches = Panels(from.places, taps * d, scratch);
  std::byte* const reduced = Panels(from.places, d, scratch);
  std::byte* const inputs = Panels(args.out.count, d, scratch);
  if (!Runs(scratch)) {
    counted().linear += static_cast<double>(from.places * taps * d) * static_cast<double>(d);
    counted().linear += 2.0 * static_cast<double>(args.out.count * d) * static_cast<double>(d);
    return;
  }
  Timed(&EncoderTimes::linears, [&] {
    CopyTyped(args.from.data, patches, staged.from, nullptr, from.places * taps, d);
    MultiplyRows(*device_, args.reduce->device, patches, from.places, reduced);
    const kernels::cuda::ColumnNorms norms = {reduced, staged.begins,           staged.keys,
                                              images,  static_cast<int32_t>(d), kInstanceNormEps,
                                              inputs,  SpanType(compute_)};
    device_->Check(maps().column_norms(device_->stream(), norms), "an instance norm");
    CopyTyped(args.from.data, inputs, staged.globals, staged.global_keys,
              int64_t{images} * from.globals, d);
    ApplyLinear(*device_, args.key_value->device, inputs, args.out.count, args.out.data);
  });
}

void DeviceMapOps::AttendByFeatures(const RandomFeatureArgs& args) {
  const int64_t d = args.out.width, images = args.offsets.count - 1;
  const int64_t dim = d / args.heads;
  Carver scratch = BeginScratch();
  kernels::cuda::PerformerRows rows = {};
  rows.tops = scratch.Take<float>(images * args.heads);
  rows.sums = scratch.Take<float>(images * args.heads * args.features * (dim + 1));
  if (!Runs(scratch)) {
    counted().attention += 4 * args.out.elements() * args.features;
    return;
  }
  rows.q = args.qkv.data;
  rows.k = Column(args.qkv.data, d, compute_);
  rows.v = Column(args.qkv.data, 2 * d, compute_);
  rows.out = args.out.data;
  rows.dtype = SpanType(compute_);
  rows.row_stride = args.qkv.stride;
  rows.out_row_stride = d;
  rows.heads = args.heads;
  rows.width = static_cast<int32_t>(dim);
  rows.features = args.features;
  rows.projection = args.projection->device();
  rows.offsets = args.offsets.data;
  rows.images = static_cast<int32_t>(images);
  rows.longest = static_cast<int32_t>(args.longest);
  Timed(&EncoderTimes::attention, [&] {
    device_->Check(device_->api().performer.run(device_->stream(), rows), "random features");
  });
}

void DeviceMapOps::Move(const Rows&, int64_t, int64_t, int64_t) { NoSlices(); }
OpenRowsBuffers DeviceMapOps::CarveOpen(const OpenRowsShape&, int64_t, Carver&) const {
  NoSlices();
}
void DeviceMapOps::BeginOpen(const OpenRowsShape&, const OpenRowsBuffers&, const Rows&) {
  NoSlices();
}
void DeviceMapOps::AppendOpen(const Rows&, const Rows&, const OpenRowsBias&) { NoSlices(); }
void DeviceMapOps::FinishOpen(const Rows&) { NoSlices(); }
std::byte* DeviceMapOps::CarveLargeMap(const LongShortPattern&, std::span<const LongShortBand>,
                                       Carver&) const {
  NoSlices();
}
void DeviceMapOps::AttendLargeMap(const LargeMapArgs&) { NoSlices(); }

}  // namespace longview::models
