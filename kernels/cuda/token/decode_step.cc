#include "kernels/cuda/token/decode_step.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/base/check.h"
#include "kernels/base/workspace.h"
#include "kernels/cuda/span/launch_shape.h"
#include "kernels/cuda/token/array_carver.h"
#include "kernels/cuda/token/cache_rows.h"
#include "kernels/span/softmax_state.h"

namespace longview::kernels::cuda {
namespace {

std::vector<int32_t> PositionsOf(std::span<const DecodeToken> tokens) {
  std::vector<int32_t> positions;
  for (const DecodeToken& token : tokens) positions.push_back(token.position());
  return positions;
}

}  // namespace

// "T" is an element of the shape's dtype.
struct DecodeStep::Buffers {
  float* x;          // [rows, width]
  std::byte* input;  // T [rows, width], x rounded
  std::byte* y;      // T [rows, projected], and every other product of width columns
  std::byte* keys;   // T [rows, width]
  std::byte* values;
  float* scores;          // [rows, columns]
  std::byte* z;           // T [rows, width]
  std::byte* wide;        // T [rows, intermediate]
  float* window_scores;   // [heads, rows, window]
  float* segment_scores;  // [heads, rows, pages]
  std::byte* hidden;      // T [closing * rank, width], with early()
  std::byte* early;       // T [closing * rank, 2 * width]
  std::byte* partials;
  std::byte* rounded;  // T [rows, vocab]
  float* logits;       // [rows, vocab]
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
  const auto rows = static_cast<size_t>(room.rows);
  const auto floats = [&](int32_t columns) {
    return take.Array<float>(rows * static_cast<size_t>(columns));
  };
  const auto typed = [&](int32_t columns) {
    return take.Array<std::byte>(rows * static_cast<size_t>(columns) * SizeOf(shape.dtype));
  };
  Buffers b;
  b.x = floats(shape.width);
  b.input = typed(shape.width);
  b.y = typed(shape.projected());
  b.keys = typed(shape.width);
  b.values = typed(shape.width);
  b.scores = floats(shape.columns());
  b.z = typed(shape.width);
  b.wide = typed(shape.intermediate);
  b.window_scores = floats(shape.heads() * shape.attention.window);
  b.segment_scores = floats(shape.heads() * room.pages);
  const int32_t pages = shape.early() ? room.closing * shape.attention.rank : 0;
  b.hidden = take.Array<std::byte>(static_cast<size_t>(pages) * static_cast<size_t>(shape.width) *
                                   SizeOf(shape.dtype));
  b.early = take.Array<std::byte>(static_cast<size_t>(pages) *
                                  static_cast<size_t>(2 * shape.width) * SizeOf(shape.dtype));
  b.partials = take.Array<std::byte>(PartialBytes(room.capacity.partial_slots, shape.dim()));
  b.rounded = typed(shape.vocab);
  b.logits = floats(shape.vocab);
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

// The step's calls, in order. After a failure the rest is left out.
class DecodeStep::Runner {
 public:
  Runner(const DecodeStep& step, const PluginApi& api, Stream* stream, const DecodeLists& lists,
         const Buffers& buffers)
      : step_(step),
        shape_(step.shape_),
        room_(step.room()),
        lists_(lists),
        api_(api),
        stream_(stream),
        b_(buffers),
        rows_(room_.rows) {}

  Status Run() {
    Embed();
    for (int layer = 0; layer < std::ssize(step_.weights_.layers); ++layer) {
      Project(layer);
      WriteSegments(layer);
      WriteWindow(layer);
      Attend(layer);
      Finish(layer);
    }
    Multiply(b_.input, rows_, step_.weights_.logits, shape_.width, shape_.vocab, b_.rounded);
    Do(api_.rows.widen,
       {b_.rounded, step_.weights_.logits.bias, b_.logits, rows_, shape_.vocab, shape_.dtype});
    return status_;
  }

 private:
  template <typename Args>
  void Do(Status (*call)(Stream*, const Args&), const std::type_identity_t<Args>& args) {
    if (status_ == 0) status_ = call(stream_, args);
  }

  const DecodeLayer& LayerOf(int layer) const { return step_.weights_.layers[layer]; }
  size_t Bytes(int32_t columns) const {
    return static_cast<size_t>(columns) * SizeOf(shape_.dtype);
  }
  int64_t Shift(int layer) const { return StateShift(step_.cache_.shape(), layer); }
  CacheRows CacheOf(int strip, int layer) const { return RowsOf(step_.cache_, strip, layer); }

  void Multiply(const std::byte* x, int32_t rows, const DecodeLinear& linear, int32_t in,
                int32_t out, std::byte* y) {
    Do(api_.token.product, {x, linear.weight, y, rows, in, out, shape_.dtype});
  }

  void Follow(const std::byte* y, const float* bias, const RowNorm& norm) {
    Do(api_.token.stream, {b_.x, y, bias, norm, b_.input, rows_, shape_.width, shape_.dtype});
  }

  void Embed() {
    const auto bytes = static_cast<int32_t>(shape_.width * sizeof(float));
    Do(api_.rows.copy,
       {step_.weights_.words, b_.x, lists_.ids, nullptr, rows_, bytes, bytes, bytes});
    Follow(nullptr, nullptr, shape_.pre_norm ? LayerOf(0).norm1 : RowNorm{});
  }

  void Project(int layer) {
    const DecodeLayer& weights = LayerOf(layer);
    Multiply(b_.input, rows_, weights.project, shape_.width, shape_.projected(), b_.y);
    Do(api_.token.project, {b_.y, weights.project.bias, weights.window_norm, b_.keys, b_.values,
                            b_.scores, rows_, shape_.width, shape_.columns(), shape_.dtype});
  }

  void WriteSegments(int layer) {
    const int32_t dim = shape_.dim();
    AppendSums(layer, {b_.y + Bytes(shape_.width), shape_.projected(), dim, dim, shape_.dtype},
               b_.y + Bytes(2 * shape_.width), 0);
    if (shape_.early()) {
      AppendSums(layer, {b_.x, shape_.width, dim, dim, DType::kFloat32}, nullptr, shape_.columns());
    }
    if (room_.closing == 0) return;
    Do(api_.token.pages, {SumsFrom(layer, 0), lists_.late_rows, CacheOf(kLateStrip, layer),
                          LayerOf(layer).segment_norm, shape_.dtype});
    if (shape_.early()) WriteEarly(layer);
  }

  // Columns of the sums from `column0` on.
  void AppendSums(int layer, const PoolRows& values, const std::byte* second, int32_t column0) {
    const int32_t columns = shape_.columns();
    Do(api_.pool.append, {{b_.scores, columns, columns, shape_.attention.rank, nullptr},
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
    Do(api_.token.means, {SumsFrom(layer, shape_.columns()), lists_.early_rows, b_.hidden,
                          shape_.heads(), shape_.dim(), shape_.dtype});
    const auto* const weight = static_cast<const std::byte*>(weights.project.weight);
    const DecodeLinear linear = {weight + static_cast<size_t>(width) * Bytes(width),
                                 weights.project.bias + width};
    Multiply(b_.hidden, pages, linear, width, 2 * width, b_.early);
    Do(api_.token.linear_pages,
       {b_.early, 2 * width, linear.bias, lists_.early_rows, CacheOf(kEarlyStrip, layer),
        weights.segment_norm, pages, shape_.dtype});
  }

  void WriteWindow(int layer) {
    Do(api_.token.store,
       {b_.keys, b_.values, lists_.window_rows, CacheOf(kWindowStrip, layer), rows_, shape_.dtype});
  }

  void ScorePositions(const float* add, const void* table, int64_t entries, const int32_t* limits,
                      int32_t most, float* scores) {
    Do(api_.token.positions,
       {b_.y, shape_.projected(), add, table, entries, limits, most, int64_t{rows_} * most, most,
        scores, rows_, shape_.heads(), shape_.dim(), Scale(), shape_.dtype});
  }
  float Scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.dim())); }

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
    SpanCall call = {};
    call.q = b_.y;
    call.out = b_.z;
    call.q_row_stride = shape_.projected();
    call.out_row_stride = shape_.width;
    call.q_head_stride = call.out_head_stride = call.Dk = call.Dv = shape_.dim();
    call.element = shape_.dtype == DType::kFloat32 ? Element::kFloat32 : Element::kBFloat16;
    call.H = shape_.heads();
    call.kv_group = 1;
    call.scale = Scale();
    for (const ScheduleSource kind : shape_.attention.Sources(/*fresh=*/false)) {
      SpanSource& source = call.sources[call.sources_used++];
      source = SourceOf(kind, layer);
      if (OfWindow(kind)) source.q_add = weights.window_add;
    }
    call.tables[kWindowTable] = ScoreTable(b_.window_scores, window);
    call.tables[kSegmentTable] = ScoreTable(b_.segment_scores, room_.pages);
    PrepareCall(&call, b_.partials, room_.capacity.partial_slots);
    const SpanLaunch launch = ShapeLaunch(room_.capacity, call, SpanKernel::kRows);
    const PlanView plan = ViewImage(room_.capacity, lists_.plan);
    if (status_ == 0) status_ = api_.span.forward(stream_, &plan, &call, &launch);
    if (status_ == 0) status_ = api_.span.merge(stream_, &plan, &call, &launch);
  }

  // pre_norm keeps the stream normalised: what follows the second linear is the next layer's norm1.
  void Finish(int layer) {
    const DecodeLayer& weights = LayerOf(layer);
    const bool last = layer + 1 == std::ssize(step_.weights_.layers);
    Multiply(b_.z, rows_, weights.out, shape_.width, shape_.width, b_.y);
    Follow(b_.y, weights.out.bias, shape_.pre_norm ? weights.norm2 : weights.norm1);
    Multiply(b_.input, rows_, weights.expand, shape_.width, shape_.intermediate, b_.wide);
    Do(api_.rows.bias,
       {b_.wide, weights.expand.bias, rows_, shape_.intermediate, shape_.activation, shape_.dtype});
    Multiply(b_.wide, rows_, weights.contract, shape_.intermediate, shape_.width, b_.y);
    Follow(b_.y, weights.contract.bias,
           !shape_.pre_norm ? weights.norm2
           : last           ? RowNorm{}
                            : LayerOf(layer + 1).norm1);
  }

  const DecodeStep& step_;
  const DecodeShape& shape_;
  const DecodeRoom& room_;
  const DecodeLists& lists_;
  const PluginApi& api_;
  Stream* const stream_;
  const Buffers& b_;
  const int32_t rows_;
  Status status_ = 0;
};

Status DecodeStep::Run(const PluginApi& api, Stream* stream, std::byte* buffers) const {
  size_t bytes = 0;
  const DecodeLists lists = CarveDecodeLists(shape_, cache_.shape(), room(), lists_, &bytes);
  const Buffers carved = CarveBuffers(shape_, room(), buffers, &bytes);
  return Runner(*this, api, stream, lists, carved).Run();
}

const float* DecodeStep::Logits(std::byte* buffers) const {
  size_t bytes = 0;
  return CarveBuffers(shape_, room(), buffers, &bytes).logits;
}

}  // namespace longview::kernels::cuda
