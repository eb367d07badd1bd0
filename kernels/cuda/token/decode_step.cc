#include "kernels/cuda/token/decode_step.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/base/check.h"
#include "kernels/base/workspace.h"
#include "kernels/cuda/span/launch_shape.h"
#include "kernels/span/softmax_state.h"

namespace longview::kernels::cuda {
namespace {

constexpr int kWindowStrip = 0, kPageStrip = 1;

int32_t PositionOf(const DecodeToken& token) {
  return static_cast<int32_t>(token.sequence->tokens() - 1);
}

std::vector<int32_t> PositionsOf(std::span<const DecodeToken> tokens) {
  std::vector<int32_t> positions;
  for (const DecodeToken& token : tokens) positions.push_back(PositionOf(token));
  return positions;
}

// Arrays one behind the other; without memory their bytes are counted.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}

  template <typename T>
  T* Array(size_t count) {
    const size_t begin = used_;
    used_ += AlignUp(count * sizeof(T));
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + begin);
  }
  size_t used() const { return used_; }

 private:
  std::byte* const memory_;
  size_t used_ = 0;
};

}  // namespace

// In one layout on both sides, [rows] where nothing is said. Rows beyond the tokens read word 0 and
// are written nowhere.
struct DecodeStep::Lists {
  int32_t* ids;
  PoolRun* runs;
  CacheRowPlace* window_rows;
  CacheRowPlace* page_rows;  // [rows * rank]
  int32_t* window_limits;    // Entries of the row's tables.
  int32_t* page_limits;
  int32_t* window_blocks;   // [WindowBlocks]
  int32_t* window_offsets;  // For absolute slots.
  int32_t* page_blocks;     // [PageBlocks]
  int32_t* page_offsets;
  std::byte* plan;
};

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
    KERNEL_CHECK(shape_.Pages(PositionOf(token)) <= weights.segment_ids);
  }
}

DecodeStep::Lists DecodeStep::CarveLists(const DecodeShape& shape, const CacheShape& cache,
                                         const DecodeRoom& room, std::byte* memory, size_t* bytes) {
  Carver take(memory);
  const auto rows = static_cast<size_t>(room.rows);
  Lists lists;
  lists.ids = take.Array<int32_t>(rows);
  lists.runs = take.Array<PoolRun>(rows);
  lists.window_rows = take.Array<CacheRowPlace>(rows);
  lists.page_rows = take.Array<CacheRowPlace>(rows * static_cast<size_t>(shape.rank));
  lists.window_limits = take.Array<int32_t>(rows);
  lists.page_limits = take.Array<int32_t>(rows);
  lists.window_blocks = take.Array<int32_t>(static_cast<size_t>(WindowBlocks(cache, room)));
  lists.window_offsets = take.Array<int32_t>(rows);
  lists.page_blocks = take.Array<int32_t>(static_cast<size_t>(PageBlocks(room)));
  lists.page_offsets = take.Array<int32_t>(rows);
  lists.plan = take.Array<std::byte>(ImageBytes(room.capacity));
  *bytes = take.used();
  return lists;
}

DecodeStep::Buffers DecodeStep::CarveBuffers(const DecodeShape& shape, const DecodeRoom& room,
                                             std::byte* memory, size_t* bytes) {
  Carver take(memory);
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
  CarveLists(shape, cache, room, nullptr, &bytes);
  return bytes;
}

size_t DecodeStep::BufferBytes(const DecodeShape& shape, const DecodeRoom& room) {
  size_t bytes = 0;
  CarveBuffers(shape, room, nullptr, &bytes);
  return bytes;
}

void DecodeStep::WriteRows(const Lists& to) const {
  for (int32_t row = 0; row < room().rows; ++row) {
    if (row >= std::ssize(tokens_)) {
      to.ids[row] = to.window_limits[row] = to.page_limits[row] = 0;
      to.runs[row] = {};
      continue;
    }
    const DecodeToken& token = tokens_[static_cast<size_t>(row)];
    const int32_t position = PositionOf(token);
    to.ids[row] = token.id;
    to.window_limits[row] = std::min(position + 1, shape_.window);
    to.page_limits[row] = shape_.Pages(position);
    to.runs[row] = {reinterpret_cast<float*>(cache_.StateAddress(*token.sequence, 0)), row, row + 1,
                    position % shape_.segment == 0, 1};
  }
}

// The cache lists places of pages for those tokens that end a segment.
void DecodeStep::WritePlaces(const Lists& to) const {
  const auto place = [&](const CachePlace& of) -> CacheRowPlace {
    return {of.block < 0 ? -1 : of.block * cache_.shape().layers, of.slot};
  };
  const std::span<const CachePlace> windows = step_.places(CacheStep::kDecode, kWindowStrip);
  const std::span<const CachePlace> pages = step_.places(CacheStep::kDecode, kPageStrip);
  size_t next = 0;
  for (int32_t row = 0; row < room().rows; ++row) {
    const bool there = row < std::ssize(tokens_);
    to.window_rows[row] = there ? place(windows[static_cast<size_t>(row)]) : CacheRowPlace{-1, 0};
    const bool ends =
        there && (PositionOf(tokens_[static_cast<size_t>(row)]) + 1) % shape_.segment == 0;
    for (int32_t k = 0; k < shape_.rank; ++k) {
      to.page_rows[row * shape_.rank + k] = ends ? place(pages[next++]) : CacheRowPlace{-1, 0};
    }
  }
}

void DecodeStep::WriteBlocks(const Lists& to) const {
  const auto write = [](const CacheTable& table, int64_t room, int32_t* blocks, int32_t* offsets) {
    KERNEL_CHECK(std::ssize(table.blocks) <= room);
    std::ranges::copy(table.blocks, blocks);
    for (size_t s = 0; s < table.first_block.size(); ++s) {
      offsets[s] = table.offsets[s] - table.first_block[s];
    }
  };
  write(step_.table(CacheStep::kDecode, kWindowStrip), WindowBlocks(cache_.shape(), room()),
        to.window_blocks, to.window_offsets);
  write(step_.table(CacheStep::kDecode, kPageStrip), PageBlocks(room()), to.page_blocks,
        to.page_offsets);
}

void DecodeStep::WriteLists(std::byte* host, std::byte* device) {
  size_t bytes = 0;
  const Lists to = CarveLists(shape_, cache_.shape(), room(), host, &bytes);
  WriteRows(to);
  WritePlaces(to);
  WriteBlocks(to);
  WriteImage(planned_.plan, room().capacity, to.plan);
  lists_ = device;
}

// The step's calls, in order. After a failure the rest is left out.
class DecodeStep::Runner {
 public:
  Runner(const DecodeStep& step, const PluginApi& api, Stream* stream, const Lists& lists,
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
  // Floats from the first layer's sums to this one's.
  int64_t Shift(int layer) const {
    const CacheShape& cache = step_.cache_.shape();
    const size_t state = AlignUp(PoolStateBytes(cache.pool_columns, cache.pool_widths));
    return layer * static_cast<int64_t>(state / sizeof(float));
  }
  CacheRows CacheOf(int strip, int layer) const {
    const Source source = step_.cache_.PagedSource(strip, layer, CacheTable());
    return {const_cast<void*>(source.k), const_cast<void*>(source.v), shape_.heads, shape_.dim(),
            BlockPitch(shape_.dim())};
  }

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
    Do(api_.token.pages, {lists_.runs, Shift(layer), lists_.page_rows, CacheOf(kPageStrip, layer),
                          LayerOf(layer).segment_norm, rows_, shape_.rank, shape_.dtype});
  }

  void WriteWindow(int layer) {
    Do(api_.token.store,
       {b_.keys, b_.values, lists_.window_rows, CacheOf(kWindowStrip, layer), rows_, shape_.dtype});
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
  SpanSource Paged(int strip, int layer, const int32_t* blocks, const int32_t* offsets) const {
    SpanSource source = {};
    const CacheRows cache = CacheOf(strip, layer);
    source.k = cache.k;
    source.v = cache.v;
    source.layout = Layout::kPaged;
    source.kv_heads = cache.heads;
    source.block_table = blocks;
    source.seq_offset = offsets;
    return source;
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
    call.sources[0] = Paged(kPageStrip, layer, lists_.page_blocks, lists_.page_offsets);
    call.sources[1] = Paged(kWindowStrip, layer, lists_.window_blocks, lists_.window_offsets);
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
  const Lists& lists_;
  const PluginApi& api_;
  Stream* const stream_;
  const Buffers& b_;
  const int32_t rows_;
  Status status_ = 0;
};

Status DecodeStep::Run(const PluginApi& api, Stream* stream, std::byte* buffers) const {
  size_t bytes = 0;
  const Lists lists = CarveLists(shape_, cache_.shape(), room(), lists_, &bytes);
  const Buffers carved = CarveBuffers(shape_, room(), buffers, &bytes);
  return Runner(*this, api, stream, lists, carved).Run();
}

const float* DecodeStep::Logits(std::byte* buffers) const {
  size_t bytes = 0;
  return CarveBuffers(shape_, room(), buffers, &bytes).logits;
}

}  // namespace longview::kernels::cuda
