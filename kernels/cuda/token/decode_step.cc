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
  float* scores;         // [rows, columns]
  std::byte* z;          // T [rows, width]
  std::byte* wide;       // T [rows, intermediate]
  float* window_scores;  // [heads, rows, window]
  float* page_scores;    // [heads, rows, pages]
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
    KERNEL_CHECK(shape_.Pages(token.position()) <= weights.segment_ids);
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
  b.window_scores = floats(shape.heads * shape.window);
  b.page_scores = floats(shape.heads * room.pages);
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
    Multiply(b_.input, step_.weights_.logits, shape_.width, shape_.vocab, b_.rounded);
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

  void Multiply(const std::byte* x, const DecodeLinear& linear, int32_t in, int32_t out,
                std::byte* y) {
    Do(api_.token.product, {x, linear.weight, y, rows_, in, out, shape_.dtype});
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
    Multiply(b_.input, weights.project, shape_.width, shape_.projected(), b_.y);
    Do(api_.token.project, {b_.y, weights.project.bias, weights.window_norm, b_.keys, b_.values,
                            b_.scores, rows_, shape_.width, shape_.columns(), shape_.dtype});
  }

  void WriteSegments(int layer) {
    const int32_t columns = shape_.columns();
    const PoolRows keys = {b_.y + Bytes(shape_.width), shape_.projected(), shape_.dim(),
                           shape_.dim(), shape_.dtype};
    Do(api_.pool.append, {{b_.scores, columns, columns, shape_.rank, nullptr},
                          keys,
                          b_.y + Bytes(2 * shape_.width),
                          lists_.runs,
                          rows_,
                          Shift(layer)});
    Do(api_.token.pages,
       {lists_.runs, Shift(layer), lists_.page_rows, CacheOf(kDecodePageStrip, layer),
        LayerOf(layer).segment_norm, rows_, shape_.rank, shape_.dtype});
  }

  void WriteWindow(int layer) {
    Do(api_.token.store, {b_.keys, b_.values, lists_.window_rows,
                          CacheOf(kDecodeWindowStrip, layer), rows_, shape_.dtype});
  }

  void ScorePositions(const float* add, const void* table, int64_t entries, const int32_t* limits,
                      int32_t most, float* scores) {
    Do(api_.token.positions,
       {b_.y, shape_.projected(), add, table, entries, limits, most, int64_t{rows_} * most, most,
        scores, rows_, shape_.heads, shape_.dim(), Scale(), shape_.dtype});
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
  void Attend(int layer) {
    const DecodeLayer& weights = LayerOf(layer);
    ScorePositions(weights.distance_add, weights.window_table, shape_.window, lists_.window_limits,
                   shape_.window, b_.window_scores);
    ScorePositions(nullptr, weights.segment_table, step_.weights_.segment_ids, lists_.page_limits,
                   room_.pages, b_.page_scores);
    SpanCall call = {};
    call.q = b_.y;
    call.out = b_.z;
    call.q_row_stride = shape_.projected();
    call.out_row_stride = shape_.width;
    call.q_head_stride = call.out_head_stride = call.Dk = call.Dv = shape_.dim();
    call.element = shape_.dtype == DType::kFloat32 ? Element::kFloat32 : Element::kBFloat16;
    call.H = shape_.heads;
    call.kv_group = 1;
    call.scale = Scale();
    call.sources_used = 2;
    call.sources[0] =
        BlocksOf(step_.cache_, kDecodePageStrip, layer, lists_.page_blocks, lists_.page_offsets);
    call.sources[1] = BlocksOf(step_.cache_, kDecodeWindowStrip, layer, lists_.window_blocks,
                               lists_.window_offsets);
    call.sources[1].q_add = weights.window_add;
    call.tables[kDecodeWindowTable] = ScoreTable(b_.window_scores, shape_.window);
    call.tables[kDecodePageTable] = ScoreTable(b_.page_scores, room_.pages);
    PrepareCall(&call, b_.partials, room_.capacity.partial_slots);
    const SpanLaunch launch = ShapeLaunch(room_.capacity, call, SpanPhase::kDecode);
    const PlanView plan = ViewImage(room_.capacity, lists_.plan);
    if (status_ == 0) status_ = api_.span.forward(stream_, &plan, &call, &launch);
    if (status_ == 0) status_ = api_.span.merge(stream_, &plan, &call, &launch);
  }

  // pre_norm keeps the stream normalised: what follows the second linear is the next layer's norm1.
  void Finish(int layer) {
    const DecodeLayer& weights = LayerOf(layer);
    const bool last = layer + 1 == std::ssize(step_.weights_.layers);
    Multiply(b_.z, weights.out, shape_.width, shape_.width, b_.y);
    Follow(b_.y, weights.out.bias, shape_.pre_norm ? weights.norm2 : weights.norm1);
    Multiply(b_.input, weights.expand, shape_.width, shape_.intermediate, b_.wide);
    Do(api_.rows.bias,
       {b_.wide, weights.expand.bias, rows_, shape_.intermediate, shape_.activation, shape_.dtype});
    Multiply(b_.wide, weights.contract, shape_.intermediate, shape_.width, b_.y);
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
