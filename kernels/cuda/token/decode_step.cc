#include "kernels/cuda/token/decode_step.h"

#include "kernels/base/check.h"
#include "kernels/cuda/token/array_carver.h"
#include "kernels/cuda/token/cache_rows.h"
#include "kernels/cuda/token/decode_layers.h"
#include "kernels/span/softmax_state.h"

namespace longview::kernels::cuda {
namespace {

std::vector<int32_t> PositionsOf(std::span<const DecodeToken> tokens) {
  std::vector<int32_t> positions;
  for (const DecodeToken& token : tokens) positions.push_back(token.position());
  return positions;
}

}  // namespace

struct DecodeStep::Buffers {
  DecodeRows rows;
  float* window_scores;   // [heads, rows, window]
  float* segment_scores;  // [heads, rows, pages]
  std::byte* hidden;      // T [closing * rank, width], with early()
  std::byte* early;       // T [closing * rank, 2 * width]
  std::byte* partials;
};

DecodeStep::DecodeStep(const DecodeShape& shape, const DecodeWeights& weights,
                       const ProjectionCache& cache, const CacheStep& step,
                       std::span<const DecodeToken> tokens)
    : shape_(shape),
      weights_(weights),
      cache_(cache),
      step_(step),
      tokens_(tokens.begin(), tokens.end()),
      planned_(PlanDecode(shape, PositionsOf(tokens))) {
  KERNEL_CHECK(cache.shape().form == BlockForm::kRows);
  KERNEL_CHECK(cache.shape().layers == static_cast<int>(weights.layers.size()));
  for (const DecodeToken& token : tokens_) {
    KERNEL_CHECK(shape_.attention.SegmentIds(token.position()) <= weights.segment_ids);
  }
}

DecodeStep::Buffers DecodeStep::CarveBuffers(const DecodeShape& shape, const DecodeRoom& room,
                                             std::byte* memory, size_t* bytes) {
  ArrayCarver take(memory);
  Buffers b;
  b.rows = CarveDecodeRows(shape, room.rows, take);
  const auto scores = [&](int32_t most) {
    return take.Array<float>(static_cast<size_t>(room.rows) *
                             static_cast<size_t>(shape.heads() * most));
  };
  b.window_scores = scores(shape.attention.window);
  b.segment_scores = scores(room.pages);
  const auto pages = [&](int32_t columns) {
    const int32_t rows = shape.early() ? room.closing * shape.attention.rank : 0;
    return take.Array<std::byte>(static_cast<size_t>(rows) * static_cast<size_t>(columns) *
                                 SizeOf(shape.dtype));
  };
  b.hidden = pages(shape.width);
  b.early = pages(2 * shape.width);
  b.partials = take.Array<std::byte>(PartialBytes(room.capacity.partial_slots, shape.dim()));
  *bytes = take.used();
  return b;
}

size_t DecodeStep::ListBytes(const DecodeShape& shape, const CacheShape& cache,
                             const DecodeRoom& room) {
  size_t bytes = 0;
  CarveDecodeLists(shape, cache, room, nullptr, &bytes);
  return bytes;
}

size_t DecodeStep::BufferBytes(const DecodeShape& shape, const DecodeRoom& room) {
  size_t bytes = 0;
  CarveBuffers(shape, room, nullptr, &bytes);
  return bytes;
}

void DecodeStep::WriteLists(std::byte* host, std::byte* device) {
  size_t bytes = 0;
  WriteDecodeLists(shape_, cache_, step_, tokens_, planned_,
                   CarveDecodeLists(shape_, cache_.shape(), room(), host, &bytes));
  lists_ = device;
}

// The step's calls that depend on the kind of cache: segments, pages, a window.
class DecodeStep::Runner {
 public:
  Runner(const DecodeStep& step, const PluginApi& api, Stream* stream, const DecodeLists& lists,
         const Buffers& buffers)
      : step_(step),
        shape_(step.shape_),
        room_(step.room()),
        lists_(lists),
        api_(api),
        b_(buffers),
        rows_(room_.rows),
        layers_(shape_, step.weights_, api, stream, b_.rows, rows_) {}

  Status Run() {
    layers_.Embed(lists_.ids);
    for (int layer = 0; layer < std::ssize(step_.weights_.layers); ++layer) {
      layers_.Project(layer);
      WriteSegments(layer);
      layers_.Store(CacheOf(kWindowStrip, layer), lists_.window_rows);
      Attend(layer);
      layers_.Finish(layer);
    }
    layers_.Logits();
    return layers_.status();
  }

 private:
  const DecodeLayer& LayerOf(int layer) const { return step_.weights_.layers[layer]; }
  size_t Bytes(int32_t columns) const {
    return static_cast<size_t>(columns) * SizeOf(shape_.dtype);
  }
  int64_t Shift(int layer) const { return StateShift(step_.cache_.shape(), layer); }
  CacheRows CacheOf(int strip, int layer) const { return RowsOf(step_.cache_, strip, layer); }

  void WriteSegments(int layer) {
    const int32_t dim = shape_.dim();
    const std::byte* const y = b_.rows.y;
    AppendSums(layer, {y + Bytes(shape_.width), shape_.projected(), dim, dim, shape_.dtype},
               y + Bytes(2 * shape_.width), 0);
    if (shape_.early()) {
      AppendSums(layer, {b_.rows.x, shape_.width, dim, dim, DType::kFloat32}, nullptr,
                 shape_.columns());
    }
    if (room_.closing == 0) return;
    layers_.Do(api_.token.pages, {SumsFrom(layer, 0), lists_.late_rows, CacheOf(kLateStrip, layer),
                                  LayerOf(layer).segment_norm, shape_.dtype});
    if (shape_.early()) WriteEarly(layer);
  }

  // Columns of the sums from `column0` on.
  void AppendSums(int layer, const PoolRows& values, const std::byte* second, int32_t column0) {
    const int32_t columns = shape_.columns();
    layers_.Do(api_.pool.append,
               {{b_.rows.scores, columns, columns, shape_.attention.rank, nullptr},
                values,
                second,
                lists_.runs,
                rows_,
                Shift(layer),
                shape_.state_columns(),
                column0});
  }

  SegmentSums SumsFrom(int layer, int32_t column0) const {
    return {lists_.closing, Shift(layer),  shape_.state_columns(),
            column0,        room_.closing, shape_.attention.rank};
  }

  // Averages of hidden states, projected as tokens are: by rows [width, 3 * width) of the linear.
  void WriteEarly(int layer) {
    const DecodeLayer& weights = LayerOf(layer);
    const int32_t width = shape_.width, pages = room_.closing * shape_.attention.rank;
    layers_.Do(api_.token.means, {SumsFrom(layer, shape_.columns()), lists_.early_rows, b_.hidden,
                                  shape_.heads(), shape_.dim(), shape_.dtype});
    const auto* const weight = static_cast<const std::byte*>(weights.project.weight);
    const DecodeLinear linear = {weight + static_cast<size_t>(width) * Bytes(width),
                                 weights.project.bias + width};
    layers_.Multiply(b_.hidden, pages, linear, width, 2 * width, b_.early);
    layers_.Do(api_.token.linear_pages,
               {b_.early, 2 * width, linear.bias, lists_.early_rows, CacheOf(kEarlyStrip, layer),
                weights.segment_norm, pages, shape_.dtype});
  }

  void ScorePositions(const float* add, const void* table, int64_t entries, const int32_t* limits,
                      int32_t most, float* scores) {
    layers_.Do(api_.token.positions, {b_.rows.y, shape_.projected(), add, table, entries, limits,
                                      most, int64_t{rows_} * most, most, scores, rows_,
                                      shape_.heads(), shape_.dim(), shape_.scale(), shape_.dtype});
  }

  SpanTable ScoreTable(const float* scores, int32_t most) const {
    SpanTable table = {};
    table.data = scores;
    table.entries = rows_ * most;
    table.head_stride = table.entries;
    table.entry_stride = 1;
    return table;
  }

  SpanSource SourceOf(ScheduleSource kind, int layer) const {
    const DecodeLayer& weights = LayerOf(layer);
    if (kind == ScheduleSource::kConstantSegments || kind == ScheduleSource::kConstantWindow) {
      const ConstantBlock& block =
          kind == ScheduleSource::kConstantWindow ? weights.zero_window : weights.zero_segments;
      return ConstantBlocks(block, shape_.heads(), step_.weights_.zeros);
    }
    const int strip = StripOf(kind);
    const DecodeTable& table = lists_.tables[static_cast<size_t>(strip)];
    return BlocksOf(step_.cache_, strip, layer, table.blocks, table.offsets);
  }

  void Attend(int layer) {
    const DecodeLayer& weights = LayerOf(layer);
    const int32_t window = shape_.attention.window;
    ScorePositions(weights.distance_add, weights.window_table, window, lists_.window_limits, window,
                   b_.window_scores);
    ScorePositions(nullptr, weights.segment_table, step_.weights_.segment_ids,
                   lists_.segment_limits, room_.pages, b_.segment_scores);
    SpanCall call = layers_.Queries();
    for (const ScheduleSource kind : shape_.attention.Sources(/*fresh=*/false)) {
      SpanSource& source = call.sources[call.sources_used++];
      source = SourceOf(kind, layer);
      if (OfWindow(kind)) source.q_add = weights.window_add;
    }
    call.tables[kWindowTable] = ScoreTable(b_.window_scores, window);
    call.tables[kSegmentTable] = ScoreTable(b_.segment_scores, room_.pages);
    layers_.Attend(call, room_.capacity, lists_.plan, b_.partials);
  }

  const DecodeStep& step_;
  const DecodeShape& shape_;
  const DecodeRoom& room_;
  const DecodeLists& lists_;
  const PluginApi& api_;
  const Buffers& b_;
  const int32_t rows_;
  DecodeLayers layers_;
};

Status DecodeStep::Run(const PluginApi& api, Stream* stream, std::byte* buffers) const {
  size_t bytes = 0;
  const DecodeLists lists = CarveDecodeLists(shape_, cache_.shape(), room(), lists_, &bytes);
  const Buffers carved = CarveBuffers(shape_, room(), buffers, &bytes);
  return Runner(*this, api, stream, lists, carved).Run();
}

const float* DecodeStep::Logits(std::byte* buffers) const {
  size_t bytes = 0;
  return CarveBuffers(shape_, room(), buffers, &bytes).rows.logits;
}

}  // namespace longview::kernels::cuda
