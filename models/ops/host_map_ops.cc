#include "models/ops/host_map_ops.h"

#include <algorithm>
#include <cstring>

#include "kernels/pool/performer.h"
#include "models/layers/map_rows.h"
#include "models/layers/span_rows.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

int64_t CountTokens(std::span<const MapTokens> images) {
  int64_t tokens = 0;
  for (const MapTokens& image : images) tokens += image.count();
  return tokens;
}

}  // namespace

HostMapOps::HostMapOps(const ComputeContext& context, std::byte* scratch, EncoderTimes* times)
    : MapOps(scratch), context_(context), counts_(scratch == nullptr), times_(times) {}

int64_t HostMapOps::input_tail() const { return kPanelRows; }

void HostMapOps::ClearTail(const Rows& rows) const {
  if (counts()) return;
  std::memset(rows.Row(rows.count), 0, static_cast<size_t>(kPanelRows * rows.row_bytes()));
}

LongShortRows HostMapOps::CarveLongShort(int64_t count, int64_t width, int64_t, bool,
                                         Carver& carver) const {
  Rows qkv;
  qkv.count = count;
  qkv.width = qkv.stride = 3 * width;
  qkv.element = ElementBytes(context_.compute);
  qkv.data = carver.TakeBytes(static_cast<size_t>(count * qkv.row_bytes()));
  LongShortRows rows;
  rows.q = qkv.Columns(0, width);
  rows.keys = rows.own_keys = qkv.Columns(width, width);
  rows.values = rows.own_values = qkv.Columns(2 * width, width);
  return rows;
}

TokensRef HostMapOps::Stage(const TokenMaps& maps) {
  std::vector<MapPositions>& positions = positions_.emplace_back();
  for (size_t i = 0; !counts() && maps.positions && i < maps.images.size(); ++i) {
    positions.push_back(maps.positions(i));
  }
  return {&maps, static_cast<int>(positions_.size()) - 1};
}

void HostMapOps::MakeTokens(const TokenArgs& args) {
  const TokenMaps& maps = *args.tokens.maps;
  const int64_t d = args.x.width;
  Carver scratch = BeginScratch();
  const int64_t in = int64_t{maps.channels} * maps.side * maps.side;
  std::byte* const panel =
      scratch.TakeBytes(static_cast<size_t>(kPanelRows * in * ElementBytes(context_.compute)));
  if (!Runs(scratch)) {
    counted().linear += static_cast<double>(CountTokens(maps.images) * in * d);
    counted().rows += 2 * args.x.elements();
    return;
  }
  const DenseLayer& layer = *args.weight->host;
  const RowKernels& kernels = ChooseRowKernels(context_.compute);
  const int64_t out_bytes = d * ElementBytes(context_.compute), half = d / 2;
  const std::vector<MapPositions>& positions = positions_[static_cast<size_t>(args.tokens.staged)];
  const TokenFinder finder(maps.images);
  const PanelContext panels{context_.pool, panel, times_};
  const auto gather = [&](int64_t token, std::byte* taps_of_token) {
    const TokenFinder::Place at = finder.Find(token);
    const Taps taps{at.y * maps.stride - maps.padding, at.x * maps.stride - maps.padding,
                    maps.side};
    if (maps.before.empty()) {
      GatherPixels(*maps.pixels[at.image], taps, context_.compute, taps_of_token);
    } else {
      GatherRows(args.before.floats(), args.before.width, maps.before[at.image], taps,
                 context_.compute, taps_of_token);
    }
  };
  const auto place = [&](int64_t token, const std::byte* y) {
    const TokenFinder::Place at = finder.Find(token);
    const MapTokens& image = maps.images[at.image];
    float* x = args.x.floats() + image.row(int64_t{at.y} * image.map.width + at.x) * d;
    if (args.norm != nullptr) {
      std::fill_n(x, d, 0.0f);
      kernels.residual_norm(x, y, layer.bias.data(), args.norm->host.view(), d, nullptr);
    } else {
      kernels.bias_widen(y, layer.bias.data(), d, x);
    }
    if (positions.empty()) return;
    const float* down = positions[at.image].down.data() + at.y * half;
    const float* across = positions[at.image].across.data() + at.x * half;
    for (int64_t i = 0; i < half; ++i) {
      x[i] += down[i];
      x[half + i] += across[i];
    }
  };
  ForEachGatheredPanel(layer, layer.linear.sizes(), finder.tokens(), panels, gather,
                       [&](int64_t token, int64_t count, int, const std::byte* y) {
                         panels.Each(count, [&](long i) { place(token + i, y + i * out_bytes); });
                       });
}

void HostMapOps::Planes(const TokensRef& tokens, const PlanesRef& maps, const Rows& x,
                        float* results) {
  if (counts()) return;
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  // A few rows at a time stay in cache while their columns become runs.
  constexpr int64_t kRows = 32;
  for (const WantedMap& map : maps.maps) {
    const MapTokens& image = tokens.maps->images[static_cast<size_t>(map.image)];
    float* const out = results + map.out0;
    const int64_t runs = (map.tokens + kRows - 1) / kRows;
    ParallelRanges(*context_.pool, runs, 1, [&](long begin, long end) {
      for (int64_t first = begin * kRows; first < std::min(end * kRows, map.tokens);
           first += kRows) {
        const int64_t last = std::min(first + kRows, map.tokens);
        for (int64_t c = 0; c < x.width; ++c) {
          for (int64_t i = first; i < last; ++i) {
            out[c * map.tokens + i] = x.floats()[image.row(i) * x.width + c];
          }
        }
      }
    });
  }
}

// Row-major over the map whatever order the tokens lie in.
void HostMapOps::Means(const MeansRef& means, const Rows& x, const NormWeight* norm,
                       float* results) {
  if (counts()) {
    counted().rows += x.elements();
    return;
  }
  const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
  const int64_t d = x.width;
  std::vector<float> row(static_cast<size_t>(d));
  std::vector<double> sum(static_cast<size_t>(d));
  for (size_t image = 0; image < means.images.size(); ++image) {
    const MapTokens& tokens = means.images[image];
    std::fill(sum.begin(), sum.end(), 0.0);
    const auto add = [&](int64_t place) {
      const float* from = x.floats() + (tokens.row0 + place) * d;
      if (norm != nullptr) {
        floats.norm(from, norm->host.view(), d, row.data());
        from = row.data();
      }
      for (int64_t c = 0; c < d; ++c) sum[c] += from[c];
    };
    const int64_t globals = tokens.rows - tokens.count();
    for (int64_t g = 0; g < globals; ++g) add(g);
    for (const int32_t place : *tokens.places) add(place);
    float* const out = results + static_cast<int64_t>(image) * d;
    for (int64_t c = 0; c < d; ++c) out[c] = static_cast<float>(sum[c] / tokens.rows);
  }
}

void HostMapOps::Biases(const BiasRef& biases, const Table&, int block, float*,
                        std::vector<kernels::Table>& tables) {
  for (const MapBias& map : *biases.maps) {
    kernels::Table& table = tables.emplace_back();
    table.entries = static_cast<int32_t>(map.rows.size());
    table.head_stride = table.entries;
    if (!counts()) table.data = map.of_block(block).data();
  }
}

void HostMapOps::AttendByFeatures(const RandomFeatureArgs& args) {
  const int64_t d = args.out.width;
  kernels::PerformerCall call;
  call.q = args.qkv.data;
  call.k = Column(args.qkv.data, d, context_.compute);
  call.v = Column(args.qkv.data, 2 * d, context_.compute);
  call.out = args.out.data;
  call.dtype = SpanType(context_.compute);
  call.row_stride = args.qkv.stride;
  call.out_row_stride = d;
  call.heads = args.heads;
  call.width = static_cast<int>(d / args.heads);
  call.features = args.features;
  call.offsets = {args.offsets.data, static_cast<size_t>(args.offsets.count)};
  const kernels::WorkspaceBytes bytes = MeasurePerformer(call);
  Carver scratch = BeginScratch();
  std::byte* const workspace = scratch.TakeBytes(bytes.total(context_.pool->threads()));
  if (!Runs(scratch)) {
    counted().attention += 4 * args.out.elements() * args.features;
    return;
  }
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  call.projection = args.projection->values();
  RunPerformer(call, kernels::CarveWorkspace(workspace, bytes), *context_.pool);
}

void HostMapOps::Move(const Rows& rows, int64_t from, int64_t to, int64_t count) {
  if (!counts()) MoveRows(rows, from, to, count);
}

void HostMapOps::BeginOpen(const OpenRowsShape& shape, const OpenRowsBuffers& buffers,
                           const Rows& queries) {
  open_shape_ = shape;
  if (counts()) return;
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  open_.emplace(shape, context_, buffers);
  open_->Begin(queries.data, queries.stride);
}

void HostMapOps::AppendOpen(const Rows& keys, const Rows& values, const OpenRowsBias& bias) {
  if (counts()) {
    counted().attention += 2 * keys.elements() * static_cast<double>(open_shape_.rows);
    return;
  }
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  open_->Append({keys.data, values.data, keys.stride, keys.count}, bias);
}

void HostMapOps::FinishOpen(const Rows& out) {
  if (!counts()) open_->Finish(out.data);
}

}  // namespace longview::models
