#include "tests/kernels/support/random_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/span/kv_layout.h"

namespace longview::kernels::testing {
namespace {

constexpr int kEntries = 4000;  // Entries of each bias table.

}  // namespace

int Choices::Draw(int lo, int hi) {
  if (!from_bytes_) return std::uniform_int_distribution<int>(lo, hi)(random_);
  const int64_t range = int64_t{hi} - lo + 1;
  int64_t value = 0;
  for (int64_t reached = 1; reached < range && !bytes_.empty(); reached *= 256) {
    value = value * 256 + bytes_[0];
    bytes_ = bytes_.subspan(1);
  }
  return static_cast<int>(lo + value % range);
}

bool Choices::Chance(double p) {
  if (!from_bytes_) return std::bernoulli_distribution(p)(random_);
  return Draw(0, 255) >= static_cast<int>(256 * (1 - p));
}

int RandomCase::Pick(std::initializer_list<int> from) {
  return *(from.begin() + Draw(0, static_cast<int>(from.size()) - 1));
}

RandomCase::RandomCase(Choices choices, DType dtype) : choices_(choices), dtype_(dtype) {
  kv_group_ = Pick({1, 1, 2, 3});
  heads_ = kv_group_ * Draw(1, 2);
  dk_ = Pick({1, 8, 16, 17, 32, 40, 64, 64, 100, 128});
  dv_ = Pick({1, 8, 16, 31, 48, 64, 64, 80, 128});
  sequences_ = Draw(1, 3);
  rows_ = Draw(1, 150);
  q_ = Tensor::Random(rows_, heads_, dk_, &random_, dtype);
  const int sources = Draw(1, 4);
  for (int s = 0; s < sources; ++s) AddSource();
  AddTables();
  AddTiles();
}

std::vector<float> RandomCase::Normals(size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random_);
  return values;
}

void RandomCase::AddSource() {
  const auto layout = static_cast<Layout>(Draw(0, 2));
  const int slots = Draw(1, 300);
  const int grid = (slots + kBlockSlots - 1) / kBlockSlots * kBlockSlots;
  const int kv_heads = heads_ / kv_group_;
  // Rounded values, so that float and bfloat16 blocks hold the same numbers.
  SourceData data{layout,
                  Tensor::Random(slots, kv_heads, dk_, &random_, DType::kBFloat16),
                  Tensor::Random(slots, kv_heads, dv_, &random_, DType::kBFloat16),
                  {},
                  {},
                  {},
                  {},
                  slots};
  if (Chance(0.3)) data.q_add = Normals(static_cast<size_t>(heads_) * dk_);
  SlotMap map{};
  map.head0 = 0;
  map.heads = heads_;
  map.valid0 = -1;
  if (layout != Layout::kPaged) {
    map.slots = grid;
    if (Chance(0.5)) {
      map.valid0 = static_cast<int32_t>(plan_.valid.size());
      for (int w = 0; w < grid / 64; ++w) {
        uint64_t word = (uint64_t{random_()} << 32) | random_();
        if (Chance(0.2)) word = 0;
        if (Chance(0.2)) word = ~uint64_t{0};
        plan_.valid.push_back(word);
      }
    }
  }
  map.run0 = static_cast<int32_t>(plan_.runs.size());
  if (layout == Layout::kRows) {
    for (int slot = 0; slot < slots;) {
      const int run = std::min(slots - slot, Draw(1, 100));
      plan_.runs.push_back({slot, slot, 1, run});
      slot += run;
    }
  }
  map.runs = static_cast<int32_t>(plan_.runs.size()) - map.run0;
  plan_.sources.push_back(map);
  sources_.push_back(std::move(data));
  StoreBlocks(&sources_.back(), DType::kFloat32);
  StoreBlocks(&sources_.back(), DType::kBFloat16);
}

void RandomCase::StoreBlocks(SourceData* source, DType dtype) {
  if (source->layout == Layout::kRows) return;
  const int kv_heads = heads_ / kv_group_;
  const KvLayout layout(dtype, dk_, dv_, kv_heads);
  const int blocks = (source->slots + kBlockSlots - 1) / kBlockSlots;
  if (source->layout == Layout::kPaged && source->block_table.empty()) {
    // Every sequence reads the same blocks; the first list is shuffled, all others equal it.
    std::vector<int32_t> ids(blocks);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random_);
    for (int s = 0; s < sequences_; ++s) {
      source->seq_offset.push_back(static_cast<int32_t>(source->block_table.size()));
      source->block_table.insert(source->block_table.end(), ids.begin(), ids.end());
    }
  }
  auto& storage = source->blocks[dtype == DType::kBFloat16];
  storage[0].assign(layout.KBlock(blocks, 0), std::byte{0});
  storage[1].assign(layout.VBlock(blocks, 0), std::byte{0});
  std::vector<float> row(kMaxHeadDim);
  for (int slot = 0; slot < source->slots; ++slot) {
    int block = slot / kBlockSlots;
    if (source->layout == Layout::kPaged) block = source->block_table[block];
    for (int h = 0; h < kv_heads; ++h) {
      for (int d = 0; d < dk_; ++d) row[d] = source->k.At(slot, h, d);
      layout.WriteK(storage[0].data() + layout.KBlock(block, h), slot % kBlockSlots, row.data(),
                    DType::kFloat32);
      for (int d = 0; d < dv_; ++d) row[d] = source->v.At(slot, h, d);
      layout.WriteV(storage[1].data() + layout.VBlock(block, h), slot % kBlockSlots, row.data(),
                    DType::kFloat32);
    }
  }
}

void RandomCase::AddTables() {
  added_ = Normals(static_cast<size_t>(heads_) * kEntries);
  dotted_ = Normals(static_cast<size_t>(kEntries) * dk_);
  dot_add_ = Normals(static_cast<size_t>(heads_) * dk_);
  Table added;
  added.data = added_.data();
  added.entries = kEntries;
  added.head_stride = Chance(0.5) ? kEntries : 0;
  Table dotted;
  dotted.data = dotted_.data();
  dotted.entries = kEntries;
  dotted.entry_stride = dk_;
  dotted.dot_add = Chance(0.5) ? dot_add_.data() : nullptr;
  tables_ = {added, dotted};
}

void RandomCase::AddTiles() {
  for (int row = 0; row < rows_;) {
    const int rows = std::min(rows_ - row, Draw(1, kMaxTileRows));
    Tile tile{};
    tile.row0 = row;
    tile.row_step = 1;
    tile.rows = rows;
    tile.seq = Draw(0, sequences_ - 1);
    tile.part = -1;
    row += rows;
    if (heads_ > 1 && Chance(0.3)) {
      tile.heads = 1;
      for (tile.head0 = 0; tile.head0 < heads_; ++tile.head0) AddTile(tile);
    } else {
      tile.heads = heads_;
      AddTile(tile);
    }
  }
  std::shuffle(plan_.items.begin(), plan_.items.end(), random_);
}

// Adds a tile, or the pieces of one whose spans are merged afterwards.
void RandomCase::AddTile(const Tile& shape) {
  const int pieces = Chance(0.3) ? Draw(1, 3) : 0;
  const int32_t part0 = plan_.partial_slots;
  const int32_t stride = shape.rows * shape.heads;
  for (int p = 0; p < std::max(pieces, 1); ++p) {
    Tile tile = shape;
    const std::vector<Span> spans = DrawSpans(tile);
    tile.span0 = static_cast<int32_t>(plan_.spans.size());
    tile.spans = static_cast<int32_t>(spans.size());
    plan_.spans.insert(plan_.spans.end(), spans.begin(), spans.end());
    if (pieces > 0) {
      tile.part = plan_.partial_slots;
      plan_.partial_slots += stride;
    }
    for (int h = 0; h < tile.heads; ++h) {
      plan_.items.push_back({static_cast<int32_t>(plan_.tiles.size()), tile.head0 + h});
    }
    plan_.tiles.push_back(tile);
  }
  for (int h = 0; pieces > 0 && h < shape.heads; ++h) {
    for (int i = 0; i < shape.rows; ++i) {
      plan_.merges.push_back(
          {shape.row0 + i, shape.head0 + h, part0 + h * shape.rows + i, stride, pieces});
    }
  }
}

std::vector<Span> RandomCase::DrawSpans(const Tile& tile) {
  std::vector<Span> spans;
  const int count = Draw(0, 4);
  for (int s = 0; s < count; ++s) {
    Span span{};
    span.source = Draw(0, static_cast<int>(sources_.size()) - 1);
    const int slots = sources_[span.source].slots;
    span.key0 = Draw(0, slots - 1);
    if (Chance(0.3)) span.key0 = span.key0 / kBlockSlots * kBlockSlots;
    span.keys = Draw(Chance(0.1) ? 0 : 1, slots - span.key0);
    if (Chance(0.3)) span.keys = std::min(span.keys, 5);
    span.key_step = 1;
    span.interval = Chance(0.5) ? DrawIntervals(tile, span.keys) : -1;
    span.holes = plan_.sources[span.source].valid0 >= 0 && Chance(0.7);
    span.bias = Chance(0.4) ? DrawBias(tile, span.keys) : -1;
    spans.push_back(span);
  }
  return spans;
}

int32_t RandomCase::DrawIntervals(const Tile& tile, int keys) {
  const auto offset = static_cast<int32_t>(plan_.intervals.size());
  const int kind = Draw(0, 2);
  const int start = Draw(-keys, keys);
  for (int i = 0; i < tile.rows; ++i) {
    Interval seen{start + i, start + i + keys / 2 + 1};  // A band.
    if (kind == 1) seen = {0, start + i};                // Causal.
    if (kind == 2) seen = {Draw(-2, keys), Draw(-2, keys + 2)};
    plan_.intervals.push_back(seen);
  }
  return offset;
}

int32_t RandomCase::DrawBias(const Tile& tile, int keys) {
  Bias bias{};
  bias.kind = Chance(0.6) ? kAdded : kDotted;
  bias.id = bias.kind;
  bias.row_mul = Draw(-3, 3);
  bias.row_div = Draw(1, 5);
  bias.row_phase = Draw(0, 4);
  bias.key_mul = Draw(-3, 3);
  const int rows = (tile.rows - 1 + bias.row_phase) / bias.row_div;
  const int lowest = std::min(0, bias.row_mul * rows) + std::min(0, bias.key_mul * (keys - 1));
  const int highest = std::max(0, bias.row_mul * rows) + std::max(0, bias.key_mul * (keys - 1));
  // Keys that no row sees may name entries outside; these stay inside for all keys of the span,
  // at either end of the table.
  bias.base = Chance(0.5) ? -lowest : kEntries - 1 - highest;
  plan_.biases.push_back(bias);
  return static_cast<int32_t>(plan_.biases.size()) - 1;
}

Call RandomCase::CallFor(DType panels, Tensor* out) {
  call_sources_.clear();
  for (SourceData& data : sources_) {
    Source source = RowsSource(data.k, data.v);
    source.layout = data.layout;
    if (data.layout != Layout::kRows) {
      const auto& storage = data.blocks[panels == DType::kBFloat16];
      source.k = storage[0].data();
      source.v = storage[1].data();
      source.dtype = panels;
      source.kv_heads = heads_ / kv_group_;
      source.block_table = data.block_table.data();
      source.seq_offset = data.seq_offset.data();
    }
    if (!data.q_add.empty()) source.q_add = data.q_add.data();
    call_sources_.push_back(source);
  }
  Call call = MakeCall(q_, out, 1.0f / std::sqrt(static_cast<float>(dk_)));
  call.kv_group = kv_group_;
  call.sources = call_sources_;
  call.tables = tables_;
  return call;
}

}  // namespace longview::kernels::testing
