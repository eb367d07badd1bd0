#include "models/cst/lm_layout.h"

#include <algorithm>
#include <utility>

#include "kernels/span/paged_planner.h"
#include "kernels/span/paged_slice_planner.h"
#include "models/cst/lm_cache.h"

namespace longview::models {
namespace {

using kernels::CacheStep;

class Layouter {
 public:
  Layouter(const CstConfig& config, int tile_rows) : config_(config), tile_rows_(tile_rows) {}

  CstPassLayout LayOut(std::vector<TokenRun> runs) {
    layout_.runs = std::move(runs);
    layout_.wanted = WantedRows(layout_.runs);
    const std::array<RunGroup, 3> groups = SortRuns(layout_.runs);
    for (size_t g = 0; g < groups.size(); ++g) {
      CstGroup& group = layout_.groups[g];
      static_cast<RunGroup&>(group) = groups[g];
      group.closing0 = layout_.closings();
      tokens_.clear();
      slices_.clear();
      for (int i = group.run0; i < group.run0 + group.runs; ++i) AddRun(i, group);
      group.closings = layout_.closings() - group.closing0;
      Plan(group);
    }
    return std::move(layout_);
  }

 private:
  void AddRun(int index, CstGroup& group) {
    const TokenRun& run = layout_.runs[static_cast<size_t>(index)];
    const auto start = static_cast<int32_t>(run.start);
    const auto count = static_cast<int32_t>(run.ids.size());
    const int32_t closing0 = layout_.closings();
    for (int32_t t = start; t < start + count;) {
      const int32_t end = std::min(start + count, (t / config_.slice + 1) * config_.slice);
      CstPiece piece;
      piece.run = index;
      piece.row0 = layout_.rows + t - start;
      piece.rows = end - t;
      piece.number = t / config_.slice;
      piece.place = t % config_.slice;
      piece.last = end == start + count;
      if (end % config_.slice == 0) {
        piece.closing = layout_.closings();
        layout_.closing_pieces.push_back(static_cast<int32_t>(layout_.pieces.size()));
        if (end % CstGranule(config_) == 0) group.snapshots.push_back(piece.closing);
      }
      layout_.piece_of_row.insert(layout_.piece_of_row.end(), static_cast<size_t>(piece.rows),
                                  static_cast<int32_t>(layout_.pieces.size()));
      layout_.pieces.push_back(piece);
      t = end;
    }
    tokens_.push_back({layout_.rows, count, start, 0, layout_.rows});
    slices_.push_back({closing0, layout_.closings() - closing0, start / config_.slice, 0, 0});
    layout_.rows += count;
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
    group.tokens = PlanPagedSlices(tokens, group.group == CacheStep::kPrefill, tokens_);
    // Finished slices are the positions of a full cache.
    kernels::PagedPattern slices;
    slices.heads = config_.heads;
    slices.tile_rows = tile_rows_;
    group.slices = PlanPaged(slices, slices_);
  }

  const CstConfig& config_;
  const int tile_rows_;
  CstPassLayout layout_;
  std::vector<kernels::PagedSequence> tokens_, slices_;
};

}  // namespace

CstPassLayout LayOutCstPass(const CstConfig& config, std::vector<TokenRun> runs, int tile_rows) {
  return Layouter(config, tile_rows).LayOut(std::move(runs));
}

}  // namespace longview::models
