#include "kernels/span/plan_builder.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "kernels/base/check.h"

namespace longview::kernels {
namespace {

constexpr int32_t kWordBits = 64;

// Key blocks of a window of 513 and two heads of 64 take 0.6 MB, which every second-level
// cache of today holds.
constexpr int32_t kHeadsTogether = 2;

// Do all rows see keys [lo, hi)?
bool AllSee(std::span<const Interval> seen, int32_t lo, int32_t hi) {
  return std::all_of(seen.begin(), seen.end(),
                     [&](const Interval& row) { return row.lo <= lo && row.hi >= hi; });
}

// Does any row see a key of [lo, hi)?
bool AnySees(std::span<const Interval> seen, int32_t lo, int32_t hi) {
  return std::any_of(seen.begin(), seen.end(), [&](const Interval& row) {
    return std::max(row.lo, lo) < std::min(row.hi, hi);
  });
}

}  // namespace

int PlanBuilder::AddSource(int32_t head0, int32_t heads) {
  KERNEL_CHECK(sources_.size() < kMaxSources);
  SourceParts parts;
  parts.head0 = head0;
  parts.heads = heads;
  sources_.push_back(std::move(parts));
  return static_cast<int>(sources_.size()) - 1;
}

int32_t PlanBuilder::NewGrid(int source) {
  int32_t& used = sources_[source].used;
  used = (used + kBlockSlots - 1) / kBlockSlots * kBlockSlots;
  return used;
}

int32_t PlanBuilder::AddRows(int source, int32_t row0, int32_t row_step, int32_t rows) {
  SourceParts& parts = sources_[source];
  const int32_t slot = parts.used;
  if (rows == 0) return slot;
  parts.runs.push_back({slot, row0, row_step, rows});
  parts.used += rows;
  return slot;
}

void PlanBuilder::AddHole(int source, int32_t slot) {
  std::vector<int32_t>& holes = sources_[source].holes;
  KERNEL_CHECK(holes.empty() || holes.back() < slot);
  holes.push_back(slot);
}

void PlanBuilder::BeginTile(const TileRowsOf& rows) {
  KERNEL_CHECK(rows.rows >= 1 && rows.rows <= kMaxTileRows);
  open_ = rows;
  open_spans_.clear();
}

void PlanBuilder::AddKeys(int source, int32_t grid, std::span<const Interval> seen,
                          const Bias* bias, Split split) {
  KERNEL_CHECK(static_cast<int32_t>(seen.size()) == open_.rows);
  int32_t lo = INT32_MAX;
  int32_t hi = 0;
  for (const Interval& row : seen) {
    if (row.lo >= row.hi) continue;
    lo = std::min(lo, row.lo);
    hi = std::max(hi, row.hi);
  }
  if (lo >= hi) return;
  CountUseful(source, grid, seen);
  enum Kind { kNone, kPartial, kFull };
  const auto emit = [&](Kind kind, int32_t begin, int32_t end) {
    if (kind == kPartial) AddSpan(source, grid, {begin, end}, seen, bias, split);
    if (kind == kFull) AddSpan(source, grid, {begin, end}, {}, bias, split);
  };
  Kind kind = kNone;
  int32_t begin = lo;
  for (int32_t at = lo; at < hi;) {
    // Blocks lie on the source's slots: a grid may start inside one.
    const int32_t border = ((grid + at) / kBlockSlots + 1) * kBlockSlots - grid;
    const int32_t next = std::min(hi, border);
    const Kind here = AllSee(seen, at, next) ? kFull : AnySees(seen, at, next) ? kPartial : kNone;
    if (here != kind || (split == Split::kSplit && at % kSplitSlots == 0)) {
      emit(kind, begin, at);
      begin = at;
      kind = here;
    }
    at = next;
  }
  emit(kind, begin, hi);
}

void PlanBuilder::AddAllKeys(int source, int32_t grid, int32_t lo, int32_t hi, const Bias* bias,
                             Split split) {
  all_.assign(open_.rows, Interval{lo, hi});
  AddKeys(source, grid, all_, bias, split);
}

void PlanBuilder::AddSpan(int source, int32_t grid, Interval keys, std::span<const Interval> seen,
                          const Bias* bias, Split split) {
  const auto [lo, hi] = keys;
  if (lo >= hi) return;
  Span span{};
  span.source = source;
  span.key0 = grid + lo;
  span.key_step = 1;
  span.keys = hi - lo;
  span.interval = -1;
  span.holes = HasHoles(source, grid + lo, grid + hi) ? 1 : 0;
  span.bias = -1;
  if (!seen.empty()) {
    span.interval = static_cast<int32_t>(plan_.intervals.size());
    for (const Interval& row : seen) {
      const int32_t first = std::clamp(row.lo - lo, 0, hi - lo);
      const int32_t last = std::clamp(row.hi - lo, first, hi - lo);
      plan_.intervals.push_back({first, last});
    }
  }
  if (bias != nullptr) {
    span.bias = static_cast<int32_t>(plan_.biases.size());
    plan_.biases.push_back(*bias);
    plan_.biases.back().base += bias->key_mul * lo;
  }
  Piece piece;
  if (split == Split::kSplit) piece = {source, grid, lo / kSplitSlots};
  open_spans_.push_back({span, piece});
}

bool PlanBuilder::HasHoles(int source, int32_t first, int32_t last) const {
  const std::vector<int32_t>& holes = sources_[source].holes;
  const auto at = std::lower_bound(holes.begin(), holes.end(), first);
  return at != holes.end() && *at < last;
}

void PlanBuilder::CountUseful(int source, int32_t grid, std::span<const Interval> seen) {
  const std::vector<int32_t>& holes = sources_[source].holes;
  for (const Interval& row : seen) {
    if (row.lo >= row.hi) continue;
    const auto first = std::lower_bound(holes.begin(), holes.end(), grid + row.lo);
    const auto last = std::lower_bound(first, holes.end(), grid + row.hi);
    plan_.useful += (row.hi - row.lo - (last - first)) * int64_t{open_.heads};
  }
}

void PlanBuilder::EndTile() {
  std::vector<size_t> cuts{0};
  for (size_t i = 1; i < open_spans_.size(); ++i) {
    if (open_spans_[i - 1].piece != open_spans_[i].piece) cuts.push_back(i);
  }
  cuts.push_back(open_spans_.size());
  const std::span<const OpenSpan> spans = open_spans_;
  const int32_t parts = static_cast<int32_t>(cuts.size()) - 1;
  if (parts == 1) {
    EmitTile(spans, -1);
    return;
  }
  const int32_t stride = open_.rows * open_.heads;
  const int32_t part0 = plan_.partial_slots;
  plan_.partial_slots += parts * stride;
  for (int32_t p = 0; p < parts; ++p) {
    EmitTile(spans.subspan(cuts[p], cuts[p + 1] - cuts[p]), part0 + p * stride);
  }
  for (int32_t h = 0; h < open_.heads; ++h) {
    for (int32_t i = 0; i < open_.rows; ++i) {
      plan_.merges.push_back({open_.row0 + i * open_.row_step, open_.head0 + h,
                              part0 + h * open_.rows + i, stride, parts});
    }
  }
}

void PlanBuilder::EmitTile(std::span<const OpenSpan> spans, int32_t part) {
  Tile tile{};
  tile.row0 = open_.row0;
  tile.row_step = open_.row_step;
  tile.rows = open_.rows;
  tile.seq = open_.seq;
  tile.head0 = open_.head0;
  tile.heads = open_.heads;
  tile.span0 = static_cast<int32_t>(plan_.spans.size());
  tile.spans = static_cast<int32_t>(spans.size());
  tile.part = part;
  int64_t work = 0;
  for (const OpenSpan& open : spans) {
    const Span& span = open.span;
    const int64_t blocks = (span.key0 + span.keys - 1) / kBlockSlots - span.key0 / kBlockSlots + 1;
    work += blocks * kBlockSlots * tile.rows;
    plan_.spans.push_back(span);
  }
  plan_.executed += work * tile.heads;
  tile_work_.push_back(work);
  plan_.tiles.push_back(tile);
}

Plan PlanBuilder::Finish() {
  FlattenSources();
  SortItems();
  return std::move(plan_);
}

void PlanBuilder::FlattenSources() {
  for (const SourceParts& parts : sources_) {
    SlotMap map{};
    map.slots = (parts.used + kBlockSlots - 1) / kBlockSlots * kBlockSlots;
    map.run0 = static_cast<int32_t>(plan_.runs.size());
    map.runs = static_cast<int32_t>(parts.runs.size());
    map.head0 = parts.head0;
    map.heads = parts.heads;
    map.valid0 = -1;
    plan_.runs.insert(plan_.runs.end(), parts.runs.begin(), parts.runs.end());
    if (!parts.holes.empty()) {
      map.valid0 = static_cast<int32_t>(plan_.valid.size());
      plan_.valid.resize(plan_.valid.size() + map.slots / kWordBits, ~uint64_t{0});
      for (const int32_t slot : parts.holes) {
        plan_.valid[map.valid0 + slot / kWordBits] &= ~(uint64_t{1} << (slot % kWordBits));
      }
    }
    plan_.sources.push_back(map);
  }
}

void PlanBuilder::SortItems() {
  for (int32_t tile = 0; tile < static_cast<int32_t>(plan_.tiles.size()); ++tile) {
    for (int32_t h = 0; h < plan_.tiles[tile].heads; ++h) {
      plan_.items.push_back({tile, plan_.tiles[tile].head0 + h});
    }
  }
  // Neighbouring items of one head read the same key blocks, those of neighbouring heads the
  // same pages of queries and outputs: a few heads together keep both in the core's cache. Work
  // counts by powers of two only, so that tiles of nearly equal work stay in sequence order.
  const auto key = [&](const Item& item) {
    const int work = std::bit_width(static_cast<uint64_t>(tile_work_[item.tile]));
    return std::tuple(item.head / kHeadsTogether, -work, item.tile, item.head);
  };
  std::sort(plan_.items.begin(), plan_.items.end(),
            [&](const Item& a, const Item& b) { return key(a) < key(b); });
}

}  // namespace longview::kernels
