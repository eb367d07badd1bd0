#include "models/longformer/layer_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/span/band_planner.h"
#include "kernels/span/full_planner.h"

namespace longview::models {
namespace {

using kernels::BandSequence;
using kernels::kBlockSlots;
using kernels::kGlobalToken;

// Tokens [0, reach) are all that the wanted local rows can see: their windows and the globals.
// 0 if every wanted row is global.
int32_t Reach(const EncoderSequence& sequence, int32_t window_span) {
  int32_t last_local = -1;
  for (const int32_t position : sequence.wanted) {
    if (sequence.roles[position] != kGlobalToken) last_local = position;
  }
  if (last_local < 0) return 0;
  int64_t reach = int64_t{last_local} + window_span + 1;
  for (int32_t t = sequence.tokens() - 1; t >= reach; --t) {
    if (sequence.roles[t] == kGlobalToken) reach = t + 1;
  }
  return static_cast<int32_t>(std::min<int64_t>(reach, sequence.tokens()));
}

// Rows of the buffer of a piece of `rows` outputs that is cut out of a document.
int64_t CutRows(int64_t rows, int64_t window) { return rows + 2 * window + kBlockSlots; }

std::vector<int32_t> Range(int64_t begin, int64_t end) {
  std::vector<int32_t> range(static_cast<size_t>(std::max<int64_t>(end - begin, 0)));
  std::iota(range.begin(), range.end(), static_cast<int32_t>(begin));
  return range;
}

class Builder {
 public:
  Builder(const LongformerConfig& config, int layer,
          std::span<const EncoderSequence* const> sequences, std::span<const int32_t> offsets,
          int tile_rows)
      : config_(config), layer_(layer), sequences_(sequences), offsets_(offsets) {
    pattern_.heads = config_.heads;
    pattern_.window_left = pattern_.window_right = config_.window[layer_];
    pattern_.dilation.assign(config_.dilation[layer_].begin(), config_.dilation[layer_].end());
    pattern_.tile_rows = tile_rows;
    plan_.inputs = offsets_.back();
  }

  // No piece has more than `piece_rows` outputs but those of one document that is not cut.
  LayerPlan Whole(int64_t piece_rows) {
    plan_.outputs = plan_.inputs;
    for (int32_t s = 0; s < size(); ++s) {
      std::vector<GlobalRow> globals;
      for (const int32_t t : GlobalsOf(*sequences_[s])) globals.push_back({s, offsets_[s] + t, 0});
      AddGlobals(s, globals);
      const int64_t tokens = sequences_[s]->tokens();
      if (tokens > piece_rows && pattern_.dilation.empty()) {
        EndPiece();
        Cut(s, piece_rows);
        continue;
      }
      if (piece_.count > 0 && piece_.count + tokens > piece_rows) EndPiece();
      AddDocument(s);
    }
    EndPiece();
    PlanFullAttention();
    return std::move(plan_);
  }

  LayerPlan Subset() {
    plan_.whole = false;
    const int32_t window_span = WindowSpan();
    for (int32_t s = 0; s < size(); ++s) AddSubset(s, window_span);
    plan_.outputs = piece_.count = static_cast<int64_t>(plan_.out_rows.size());
    plan_.pieces.push_back(std::move(piece_));
    if (!bands_.empty()) plan_.pieces.back().band = PlanBand(pattern_, bands_);
    PlanFullAttention();
    return std::move(plan_);
  }

 private:
  int32_t size() const { return static_cast<int32_t>(sequences_.size()); }

  // Tokens to each side that a local row can see.
  int32_t WindowSpan() const {
    int32_t span = config_.window[layer_];
    for (const int dilation : config_.dilation[layer_]) {
      span = std::max(span, config_.window[layer_] * dilation);
    }
    return span;
  }

  void AddDocument(int32_t s) {
    const EncoderSequence& sequence = *sequences_[s];
    if (piece_.count == 0) piece_.first = piece_.fresh = offsets_[s];
    BandSequence band;
    band.row0 = static_cast<int32_t>(piece_.count);
    band.tokens = sequence.tokens();
    band.roles = sequence.roles;
    bands_.push_back(band);
    piece_.count += sequence.tokens();
    piece_.projected = piece_.count;
  }

  // Ends a piece of whole documents, if there is one.
  void EndPiece() {
    if (piece_.count == 0) return;
    piece_.band = PlanBand(pattern_, bands_);
    AddPiece();
    bands_.clear();
  }

  void AddPiece() {
    piece_.folded = GlobalsWithin(plan_.folded);
    piece_.unfolded = GlobalsWithin(plan_.unfolded);
    plan_.pieces.push_back(std::exchange(piece_, {}));
  }

  LayerPiece::Globals GlobalsWithin(const std::vector<GlobalRow>& rows) const {
    const auto before = [](const GlobalRow& global, int64_t row) { return global.row < row; };
    const auto begin = std::lower_bound(rows.begin(), rows.end(), piece_.first, before);
    const auto end = std::lower_bound(begin, rows.end(), piece_.first + piece_.count, before);
    LayerPiece::Globals globals;
    globals.first = begin - rows.begin();
    for (auto global = begin; global != end; ++global) {
      globals.places.push_back(static_cast<int32_t>(global->row - piece_.first));
    }
    return globals;
  }

  // Keys of a piece begin with a block, so that their places on the grid are those of the whole.
  void Cut(int32_t s, int64_t piece_rows) {
    const EncoderSequence& sequence = *sequences_[s];
    const int64_t tokens = sequence.tokens(), window = config_.window[layer_];
    const std::vector<int32_t> globals = GlobalsOf(sequence);
    const auto base = std::ssize(globals);
    // Counted from the piece's first token, which is row `base` of the buffer.
    const std::vector<int32_t> global_places = Range(-base, 0);
    int64_t last_begin = 0, last_end = 0;
    for (int64_t first = 0; first < tokens; first += piece_rows) {
      const int64_t begin = std::max<int64_t>(0, first - window) / kBlockSlots * kBlockSlots;
      const int64_t count = std::min(piece_rows, tokens - first);
      const int64_t end = std::min(tokens, first + count + window);
      piece_.first = offsets_[s] + first;
      piece_.count = count;
      piece_.base = base;
      piece_.query = base + first - begin;
      piece_.carried = Range(base + begin - last_begin, base + last_end - last_begin);
      piece_.fresh = offsets_[s] + last_end;
      piece_.projected = end - last_end;
      if (first == 0) {
        for (const int32_t t : globals) piece_.cut_globals.push_back(offsets_[s] + t);
      }
      BandSequence band;
      band.row0 = static_cast<int32_t>(base);
      band.tokens = static_cast<int32_t>(end - begin);
      band.roles = std::span(sequence.roles)
                       .subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      const std::vector<int32_t> wanted = Range(first - begin, first - begin + count);
      band.wanted = &wanted;
      band.globals = &global_places;
      piece_.band = PlanBand(pattern_, {&band, 1});
      AddPiece();
      last_begin = begin;
      last_end = end;
    }
  }

  void AddSubset(int32_t s, int32_t window_span) {
    const EncoderSequence& sequence = *sequences_[s];
    const int32_t reach = Reach(sequence, window_span);
    const auto local0 = static_cast<int32_t>(plan_.local_rows.size());
    const auto out0 = static_cast<int32_t>(plan_.out_rows.size());
    for (int32_t t = 0; t < reach; ++t) plan_.local_rows.push_back(offsets_[s] + t);
    std::vector<GlobalRow> globals;
    std::vector<int32_t> places;
    for (const int32_t position : sequence.wanted) {
      if (sequence.roles[position] == kGlobalToken) {
        globals.push_back({s, offsets_[s] + position, 0});
        places.push_back(static_cast<int32_t>(plan_.out_rows.size()));
      }
      plan_.query_rows.push_back(position < reach ? local0 + position : -1);
      plan_.out_rows.push_back(offsets_[s] + position);
    }
    std::vector<int32_t>& all =
        AddGlobals(s, globals) ? piece_.folded.places : piece_.unfolded.places;
    all.insert(all.end(), places.begin(), places.end());
    if (reach == 0) return;
    BandSequence band;
    band.row0 = local0;
    band.tokens = reach;
    band.roles = std::span(sequence.roles).first(reach);
    band.wanted = &sequence.wanted;
    band.query_row0 = out0;
    bands_.push_back(band);
  }

  // Returns whether they are folded.
  bool AddGlobals(int32_t s, std::vector<GlobalRow>& globals) {
    if (globals.empty()) return false;
    const EncoderSequence& sequence = *sequences_[s];
    const auto all = std::count(sequence.roles.begin(), sequence.roles.end(), kGlobalToken);
    const bool folds = FoldsGlobals(config_, static_cast<int>(all));
    std::vector<GlobalRow>& rows = folds ? plan_.folded : plan_.unfolded;
    std::vector<GlobalGroup>& groups = folds ? plan_.folded_groups : plan_.unfolded_groups;
    groups.push_back({s, static_cast<int32_t>(rows.size()), static_cast<int32_t>(globals.size()),
                      offsets_[s], sequence.tokens(),
                      static_cast<int32_t>(folds ? 0 : plan_.global_key_rows)});
    for (GlobalRow& global : globals) {
      global.out = static_cast<int32_t>(rows.size());
      rows.push_back(global);
    }
    if (!folds) plan_.global_key_rows += sequence.tokens();
    return folds;
  }

  void PlanFullAttention() {
    std::vector<kernels::FullSequence> full;
    full.reserve(plan_.unfolded_groups.size());
    for (const GlobalGroup& group : plan_.unfolded_groups) {
      full.push_back({group.first, group.count, group.key_row0, group.tokens,
                      sequences_[group.sequence]->roles});
    }
    kernels::FullPattern pattern;
    pattern.heads = config_.heads;
    pattern.split = true;
    pattern.tile_rows = pattern_.tile_rows;
    if (!full.empty()) plan_.full = PlanFull(pattern, full);
  }

  const LongformerConfig& config_;
  const int layer_;
  const std::span<const EncoderSequence* const> sequences_;
  const std::span<const int32_t> offsets_;
  kernels::BandPattern pattern_;
  LayerPlan plan_;
  LayerPiece piece_;                 // The one that is being made,
  std::vector<BandSequence> bands_;  // and its documents.
};

}  // namespace

std::vector<int32_t> GlobalsOf(const EncoderSequence& sequence) {
  BandSequence band;
  band.tokens = sequence.tokens();
  band.roles = sequence.roles;
  return kernels::GlobalPositions(band);
}

bool FoldsGlobals(const LongformerConfig& config, int globals) {
  // Folding costs 2 g A n H multiply-adds in vector code, projecting 2 n H^2 in the faster
  // matrix product: the factor is their rates' ratio.
  constexpr int64_t kRateRatio = 4;
  return int64_t{globals} * config.heads * kRateRatio <= config.width;
}

void LayerRows::Include(const LayerRows& other) {
  projections = std::max(projections, other.projections);
  outputs = std::max(outputs, other.outputs);
  globals = std::max(globals, other.globals);
}

// Rows that are carried from a piece to the next must not overlap with where they go.
int64_t LayerPlanner::PieceRows(int layer) const {
  const int64_t most = std::max(piece_rows_, 4 * int64_t{config_.window[layer]} + 2 * kBlockSlots);
  return (most + kBlockSlots - 1) / kBlockSlots * kBlockSlots;
}

LayerPlan LayerPlanner::Plan(int layer, bool subset) const {
  Builder builder(config_, layer, sequences_, offsets_, tile_rows_);
  return subset ? builder.Subset() : builder.Whole(PieceRows(layer));
}

LayerRows LayerPlanner::Rows(int layer) const {
  const int64_t piece_rows = PieceRows(layer);
  LayerRows rows;
  rows.outputs = rows.projections = std::min<int64_t>(piece_rows, offsets_.back());
  for (const EncoderSequence* sequence : sequences_) {
    const int64_t tokens = sequence->tokens();
    if (tokens <= piece_rows) continue;
    if (!config_.dilation[layer].empty()) {
      rows.Include({tokens, tokens, 0});
      continue;
    }
    const auto globals = std::ssize(GlobalsOf(*sequence));
    rows.Include({CutRows(piece_rows, config_.window[layer]) + globals, piece_rows, globals});
  }
  return rows;
}

}  // namespace longview::models
