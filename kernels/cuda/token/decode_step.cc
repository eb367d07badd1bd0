#include "kernels/cuda/token/decode_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/check.h"
#include "kernels/base/workspace.h"
#include "kernels/cuda/span/decode_plan.h"
#include "kernels/cuda/span/launch_shape.h"
#include "kernels/span/paged_planner.h"
#include "kernels/span/softmax_state.h"

namespace longview::kernels::cuda {
namespace {

constexpr int kWindowStrip = 0, kPageStrip = 1;
constexpr int kWindowTable = 0, kSegmentTable = 1;

int64_t PositionOf(const DecodeToken& token) { return token.sequence->tokens() - 1; }

}  // namespace

// Arrays one behind the other, at the same offsets on both sides. Without memory they are counted.
class DecodeStep::Lists {
 public:
  Lists(std::byte* host, std::byte* device) : host_(host), device_(device) {}

  // Room that the caller fills, through *at.
  std::byte* Take(size_t bytes, std::byte** at) {
    const size_t begin = used_;
    used_ += AlignUp(bytes);
    *at = host_ == nullptr ? nullptr : host_ + begin;
    return device_ == nullptr ? nullptr : device_ + begin;
  }

  template <typename T>
  const T* Add(std::span<const T> values) {
    std::byte* at = nullptr;
    std::byte* const device = Take(values.size_bytes(), &at);
    if (at != nullptr && !values.empty()) std::memcpy(at, values.data(), values.size_bytes());
    return reinterpret_cast<const T*>(device);
  }
  template <typename T>
  const T* Add(const std::vector<T>& values) {
    return Add(std::span<const T>(values));
  }

  size_t used() const { return used_; }

 private:
  std::byte* const host_;
  std::byte* const device_;
  size_t used_ = 0;
};

// "T" is an element of the shape's dtype.
struct DecodeStep::Buffers {
  float* x;          // [rows, width]
  std::byte* input;  // T [rows, width], x rounded
  std::byte* y;      // T [rows, projected], and every other product of width columns
  std::byte* keys;   // T [rows, width]
  std::byte* values;
  float* scores;    // [rows, columns]
  std::byte* z;     // T [rows, width]
  std::byte* wide;  // T [rows, intermediate]
  float* window_scores;
  float* segment_scores;
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
      tokens_(tokens.begin(), tokens.end()) {
  KERNEL_CHECK(!tokens_.empty() && cache.shape().form == BlockForm::kRows);
  KERNEL_CHECK(cache.shape().layers == static_cast<int>(weights.layers.size()));
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const int64_t position = PositionOf(tokens_[i]);
    if ((position + 1) % shape_.segment == 0) closing_.push_back(static_cast<int32_t>(i));
    most_segments_ =
        std::max(most_segments_, static_cast<int32_t>(position / shape_.segment * shape_.rank));
  }
  KERNEL_CHECK(most_segments_ <= weights.segment_ids);
  PlanAttention();
  PlaceLists(nullptr, nullptr, &list_bytes_);
  Carve(nullptr, &buffer_bytes_);
}

// Biases are Added: every row reads scores of its own.
void DecodeStep::PlanAttention() {
  PagedPattern pattern;
  pattern.heads = shape_.heads;
  pattern.window = shape_.window;
  pattern.segment = shape_.segment;
  pattern.rank = shape_.rank;
  pattern.window_table = kWindowTable;
  pattern.page_table = kSegmentTable;
  pattern.tile_rows = kDeviceTileRows;
  std::vector<PagedSequence> batch;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    PagedSequence& sequence = batch.emplace_back();
    sequence.query_row0 = static_cast<int32_t>(i);
    sequence.tokens = 1;
    sequence.start = static_cast<int32_t>(PositionOf(tokens_[i]));
  }
  Plan plan = PlanPaged(pattern, batch);
  for (const Tile& tile : plan.tiles) {
    for (int32_t s = tile.span0; s < tile.span0 + tile.spans; ++s) {
      Bias& bias = plan.biases[plan.spans[s].bias];
      bias.kind = kAdded;
      bias.base += tile.row0 * (bias.id == kWindowTable ? shape_.window : most_segments_);
    }
  }
  plan_ = CutForDecode(plan);
  capacity_ = CapacityOf(plan_);
}

DecodeStep::Placed DecodeStep::PlaceLists(std::byte* host, std::byte* device, size_t* bytes) const {
  Lists lists(host, device);
  std::vector<int32_t> ids, window_limits, segment_limits;
  std::vector<PoolRun> runs;
  for (const DecodeToken& token : tokens_) {
    const auto position = static_cast<int32_t>(PositionOf(token));
    const auto row = static_cast<int32_t>(ids.size());
    ids.push_back(token.id);
    window_limits.push_back(std::min(position + 1, shape_.window));
    segment_limits.push_back(position / shape_.segment * shape_.rank);
    runs.push_back({reinterpret_cast<float*>(cache_.StateAddress(*token.sequence, 0)), row, row + 1,
                    position % shape_.segment == 0, 1});
  }
  const auto places = [&](int strip) {
    std::vector<CacheRowPlace> rows;
    for (const CachePlace& place : step_.places(CacheStep::kDecode, strip)) {
      const int32_t block = place.block < 0 ? -1 : place.block * cache_.shape().layers;
      rows.push_back({block, place.slot});
    }
    return lists.Add(rows);
  };
  const auto offsets = [&](const CacheTable& table) {
    std::vector<int32_t> absolute;
    for (size_t s = 0; s < table.first_block.size(); ++s) {
      absolute.push_back(table.offsets[s] - table.first_block[s]);
    }
    return lists.Add(absolute);
  };
  const CacheTable& window = step_.table(CacheStep::kDecode, kWindowStrip);
  const CacheTable& pages = step_.table(CacheStep::kDecode, kPageStrip);
  Placed placed = {};
  placed.ids = lists.Add(ids);
  placed.runs = lists.Add(runs);
  placed.closing = lists.Add(closing_);
  placed.window_rows = places(kWindowStrip);
  placed.page_rows = places(kPageStrip);
  placed.window_limits = lists.Add(window_limits);
  placed.segment_limits = lists.Add(segment_limits);
  placed.window_blocks = lists.Add(window.blocks);
  placed.window_offsets = offsets(window);
  placed.page_blocks = lists.Add(pages.blocks);
  placed.page_offsets = offsets(pages);
  std::byte* image = nullptr;
  const std::byte* const on_device = lists.Take(ImageBytes(capacity_), &image);
  if (image != nullptr) {
    WriteImage(plan_, capacity_, image);
    placed.plan = ViewImage(capacity_, on_device);
  }
  *bytes = lists.used();
  return placed;
}

void DecodeStep::WriteLists(std::byte* host, std::byte* device) {
  size_t bytes = 0;
  placed_ = PlaceLists(host, device, &bytes);
}

DecodeStep::Buffers DecodeStep::Carve(std::byte* memory, size_t* bytes) const {
  size_t used = 0;
  const auto take = [&](size_t size) {
    const size_t begin = used;
    used += AlignUp(size);
    return memory == nullptr ? nullptr : memory + begin;
  };
  const auto rows = tokens_.size();
  const auto floats = [&](size_t count) {
    return reinterpret_cast<float*>(take(count * sizeof(float)));
  };
  const auto typed = [&](size_t columns) { return take(rows * columns * SizeOf(shape_.dtype)); };
  const auto width = static_cast<size_t>(shape_.width), vocab = static_cast<size_t>(shape_.vocab);
  const auto heads = static_cast<size_t>(shape_.heads);
  Buffers b;
  b.x = floats(rows * width);
  b.input = typed(width);
  b.y = typed(static_cast<size_t>(shape_.projected()));
  b.keys = typed(width);
  b.values = typed(width);
  b.scores = floats(rows * static_cast<size_t>(shape_.columns()));
  b.z = typed(width);
  b.wide = typed(static_cast<size_t>(shape_.intermediate));
  b.window_scores = floats(heads * rows * static_cast<size_t>(shape_.window));
  b.segment_scores = floats(heads * rows * static_cast<size_t>(most_segments_));
  b.partials = take(PartialBytes(capacity_.partial_slots, shape_.dim()));
  b.rounded = typed(vocab);
  b.logits = floats(rows * vocab);
  *bytes = used;
  return b;
}

// The step's calls, in order. After a failure the rest is left out.
class DecodeStep::Runner {
 public:
  Runner(const DecodeStep& step, const PluginApi& api, Stream* stream, const Buffers& buffers)
      : step_(step),
        shape_(step.shape_),
        lists_(step.placed_),
        api_(api),
        stream_(stream),
        b_(buffers),
        rows_(static_cast<int32_t>(step.tokens_.size())) {}

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
    if (step_.closing_.empty()) return;
    Do(api_.token.pages, {lists_.runs, lists_.closing, Shift(layer), lists_.page_rows,
                          CacheOf(kPageStrip, layer), LayerOf(layer).segment_norm,
                          static_cast<int32_t>(step_.closing_.size()), shape_.rank, shape_.dtype});
  }

  void WriteWindow(int layer) {
    Do(api_.token.store,
       {b_.keys, b_.values, lists_.window_rows, CacheOf(kWindowStrip, layer), rows_, shape_.dtype});
  }

  void ScorePositions(const float* add, const void* table, int64_t entries, const int32_t* limits,
                      int32_t most, float* scores) {
    if (most == 0) return;
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
    const int32_t most = step_.most_segments_;
    ScorePositions(weights.distance_add, weights.window_table, shape_.window, lists_.window_limits,
                   shape_.window, b_.window_scores);
    ScorePositions(nullptr, weights.segment_table, step_.weights_.segment_ids,
                   lists_.segment_limits, most, b_.segment_scores);
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
    call.tables[kWindowTable] = ScoreTable(b_.window_scores, shape_.window);
    call.tables[kSegmentTable] = ScoreTable(b_.segment_scores, most);
    PrepareCall(&call, b_.partials, step_.capacity_.partial_slots);
    const SpanLaunch launch = ShapeLaunch(step_.capacity_, call, SpanPhase::kDecode);
    if (status_ == 0) status_ = api_.span.forward(stream_, &lists_.plan, &call, &launch);
    if (status_ == 0) status_ = api_.span.merge(stream_, &lists_.plan, &call, &launch);
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
  const Placed& lists_;
  const PluginApi& api_;
  Stream* const stream_;
  const Buffers& b_;
  const int32_t rows_;
  Status status_ = 0;
};

Status DecodeStep::Run(const PluginApi& api, Stream* stream, std::byte* buffers,
                       const float** logits) const {
  size_t bytes = 0;
  const Buffers carved = Carve(buffers, &bytes);
  *logits = carved.logits;
  return Runner(*this, api, stream, carved).Run();
}

}  // namespace longview::kernels::cuda
