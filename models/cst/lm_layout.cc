#include "models/cst/lm_layout.h"

#include <algorithm>
#include <utility>

#include "kernels/span/paged_planner.h"
#include "kernels/span/paged_slice_planner.h"
#include "models/cst/lm_cache.h"

namespace longview::models {
namespace {

// The rows of one slice in one run.
struct Piece {
  int32_t row0, rows;
  int32_t number;  // The slice's.
  int32_t place;   // The first row's in it; above 0 the slice was begun in an earlier pass.
  bool closes, last;
};

class Layouter {
 public:
  Layouter(const CstConfig& config, int tile_rows)
      : config_(config), width_(config.width), tile_rows_(tile_rows) {}

  CstLmLayout LayOut(std::vector<TokenRun> runs) {
    layout_.runs = std::move(runs);
    layout_.wanted = WantedRows(layout_.runs);
    const std::array<RunGroup, 3> groups = SortRuns(layout_.runs);
    for (const TokenRun& run : layout_.runs) {
      const int64_t slices = (run.start + run.rows()) / config_.slice - run.start / config_.slice;
      layout_.closings += static_cast<int32_t>(slices);
    }
    layout_.parts.resize(static_cast<size_t>(layout_.closings));
    for (size_t g = 0; g < groups.size(); ++g) {
      CstGroup& group = layout_.groups[g];
      static_cast<RunGroup&>(group) = groups[g];
      group.closing0 = closed_;
      tokens_.clear();
      slices_.clear();
      for (int i = group.run0; i < group.run0 + group.runs; ++i) AddRun(i);
      group.closings = closed_ - group.closing0;
      Plan(group);
    }
    return std::move(layout_);
  }

 private:
  bool linear() const { return config_.slice_pooling == CstPooling::kLinear; }

  void AddRun(int index) {
    const TokenRun& run = layout_.runs[static_cast<size_t>(index)];
    const auto start = static_cast<int32_t>(run.start), count = static_cast<int32_t>(run.rows());
    const auto row0 = static_cast<int32_t>(layout_.rows());
    const int32_t closed0 = closed_;
    AddRows(run, row0);
    // The output that the run's rows add: none, the state's, or that of the slice before.
    global_ = start < config_.slice ? -1 : layout_.closings + index;
    if (global_ >= 0) layout_.globals_in.push_back({index, true, 0, global_});
    for (int32_t t = start; t < start + count;) {
      const int32_t end = std::min(start + count, (t / config_.slice + 1) * config_.slice);
      AddPiece(index, {row0 + t - start, end - t, t / config_.slice, t % config_.slice,
                       end % config_.slice == 0, end == start + count});
      t = end;
    }
    if (global_ >= 0) layout_.globals_out.push_back({index, true, 0, global_});
    tokens_.push_back({row0, count, start, 0, row0});
    slices_.push_back({closed0, closed_ - closed0, start / config_.slice, 0, 0});
  }

  void AddRows(const TokenRun& run, int32_t row0) {
    const int32_t entries = config_.multi_scale() ? config_.slice : 1;
    layout_.ids.insert(layout_.ids.end(), run.ids.begin(), run.ids.end());
    for (int64_t i = 0; i < run.rows(); ++i) {
      const auto position = static_cast<int32_t>(run.start + i);
      layout_.positions.push_back(position);
      layout_.token_entries.push_back(std::min(position % config_.slice, entries - 1));
    }
    layout_.kinds.resize(layout_.ids.size());
    layout_.pooled_places.resize(static_cast<size_t>(row0 + run.rows()), -1);
  }

  void AddPiece(int run, const Piece& piece) {
    layout_.globals.insert(layout_.globals.end(), static_cast<size_t>(piece.rows), global_);
    const int32_t part = piece.closes ? closed_ : static_cast<int32_t>(layout_.parts.size());
    const kernels::SlicePart rows = {piece.row0, piece.rows, piece.place == 0 ? 1 : 0,
                                     piece.closes ? config_.slice : 0};
    linear() ? ListRows(run, piece) : ListSums(run, piece, part);
    if (!piece.closes) return layout_.parts.push_back(rows);
    layout_.parts[static_cast<size_t>(part)] = rows;
    const int32_t entries = config_.multi_scale() ? config_.most_slices() : 1;
    layout_.slice_entries.push_back(std::min(piece.number, entries - 1));
    layout_.snapshots.push_back((piece.number + 1) * config_.slice % CstPrefillAlignment(config_) ==
                                0);
    global_ = closed_++;
  }

  void ListSums(int run, const Piece& piece, int32_t part) {
    if (piece.place > 0) layout_.sums_in.push_back({run, false, 0, part});
    if (!piece.closes) layout_.sums_out.push_back({run, false, 0, part});
  }

  // An open slice's state is its rows; a slice that ends goes through the linear whole.
  void ListRows(int run, const Piece& piece) {
    const int32_t whole = closed_ * config_.slice;
    for (int32_t i = 0; piece.closes && i < piece.place; ++i) {
      layout_.sums_in.push_back({run, false, i * width_, whole + i});
    }
    for (int32_t i = 0; i < piece.rows; ++i) {
      const int32_t row = piece.row0 + i, place = piece.place + i;
      if (piece.closes) {
        layout_.pooled_places[static_cast<size_t>(row)] = whole + place;
      } else {
        layout_.sums_out.push_back({run, false, place * width_, row});
      }
    }
  }

  void Plan(CstGroup& group) const {
    kernels::SlicePattern tokens;
    tokens.heads = config_.heads;
    tokens.slice = config_.slice;
    tokens.extension = config_.extension;
    tokens.autoregressive = true;
    tokens.positions = config_.relative_keys();
    tokens.zero_boundary = config_.zero_boundary;
    tokens.tile_rows = tile_rows_;
    group.tokens = PlanPagedSlices(tokens, group.group == kernels::CacheStep::kPrefill, tokens_);
    // Finished slices are the positions of a full cache.
    kernels::PagedPattern slices;
    slices.heads = config_.heads;
    slices.tile_rows = tile_rows_;
    group.slices = PlanPaged(slices, slices_);
  }

  const CstConfig& config_;
  const int64_t width_;
  const int tile_rows_;
  CstLmLayout layout_;
  std::vector<kernels::PagedSequence> tokens_, slices_;
  int32_t closed_ = 0;   // Slices that ended so far.
  int32_t global_ = -1;  // Value of CstLmLayout::globals for the next piece.
};

}  // namespace

CstLmLayout LayOutCstLm(const CstConfig& config, std::vector<TokenRun> runs, int tile_rows) {
  return Layouter(config, tile_rows).LayOut(std::move(runs));
}

}  // namespace longview::models
