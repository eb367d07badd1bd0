#include "models/longformer/layer_plan.h"

#include <algorithm>

#include "kernels/span/band_planner.h"
#include "kernels/span/full_planner.h"

namespace longview::models {
namespace {

using kernels::BandSequence;
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

class Builder {
 public:
  Builder(const LongformerConfig& config, int layer,
          std::span<const EncoderSequence* const> sequences, std::span<const int32_t> offsets,
          bool subset, int tile_rows)
      : config_(config),
        layer_(layer),
        sequences_(sequences),
        offsets_(offsets),
        subset_(subset),
        tile_rows_(tile_rows) {}

  LayerPlan Build() {
    plan_.whole = !subset_;
    plan_.inputs = offsets_.back();
    int32_t window_span = config_.window[layer_];
    for (const int dilation : config_.dilation[layer_]) {
      window_span = std::max(window_span, config_.window[layer_] * dilation);
    }
    for (size_t s = 0; s < sequences_.size(); ++s) {
      subset_ ? AddSubset(static_cast<int32_t>(s), window_span) : AddWhole(static_cast<int32_t>(s));
    }
    plan_.locals = subset_ ? static_cast<int64_t>(plan_.local_rows.size()) : plan_.inputs;
    plan_.outputs = subset_ ? static_cast<int64_t>(plan_.out_rows.size()) : plan_.inputs;
    PlanAttention();
    return std::move(plan_);
  }

 private:
  void AddWhole(int32_t s) {
    const EncoderSequence& sequence = *sequences_[s];
    BandSequence band;
    band.row0 = offsets_[s];
    band.tokens = sequence.tokens();
    band.roles = sequence.roles;
    bands_.push_back(band);
    std::vector<GlobalRow> globals;
    for (int32_t t = 0; t < sequence.tokens(); ++t) {
      if (sequence.roles[t] != kGlobalToken) continue;
      globals.push_back({s, offsets_[s] + t, offsets_[s] + t});
    }
    AddGlobals(s, globals);
  }

  void AddSubset(int32_t s, int32_t window_span) {
    const EncoderSequence& sequence = *sequences_[s];
    const int32_t reach = Reach(sequence, window_span);
    const auto local0 = static_cast<int32_t>(plan_.local_rows.size());
    const auto out0 = static_cast<int32_t>(plan_.out_rows.size());
    for (int32_t t = 0; t < reach; ++t) plan_.local_rows.push_back(offsets_[s] + t);
    std::vector<GlobalRow> globals;
    for (const int32_t position : sequence.wanted) {
      const auto out = static_cast<int32_t>(plan_.out_rows.size());
      if (sequence.roles[position] == kGlobalToken) {
        globals.push_back({s, offsets_[s] + position, out});
      }
      plan_.query_rows.push_back(position < reach ? local0 + position : -1);
      plan_.out_rows.push_back(offsets_[s] + position);
    }
    AddGlobals(s, globals);
    if (reach == 0) return;
    BandSequence band;
    band.row0 = local0;
    band.tokens = reach;
    band.roles = std::span(sequence.roles).first(reach);
    band.wanted = &sequence.wanted;
    band.query_row0 = out0;
    bands_.push_back(band);
  }

  void AddGlobals(int32_t s, const std::vector<GlobalRow>& globals) {
    if (globals.empty()) return;
    const EncoderSequence& sequence = *sequences_[s];
    const auto all = std::count(sequence.roles.begin(), sequence.roles.end(), kGlobalToken);
    const bool folds = FoldsGlobals(config_, static_cast<int>(all));
    std::vector<GlobalRow>& rows = folds ? plan_.folded : plan_.unfolded;
    std::vector<GlobalGroup>& groups = folds ? plan_.folded_groups : plan_.unfolded_groups;
    groups.push_back({s, static_cast<int32_t>(rows.size()), static_cast<int32_t>(globals.size()),
                      offsets_[s], sequence.tokens(),
                      static_cast<int32_t>(folds ? 0 : plan_.global_key_rows)});
    rows.insert(rows.end(), globals.begin(), globals.end());
    if (!folds) plan_.global_key_rows += sequence.tokens();
  }

  void PlanAttention() {
    kernels::BandPattern pattern;
    pattern.heads = config_.heads;
    pattern.window_left = pattern.window_right = config_.window[layer_];
    pattern.dilation.assign(config_.dilation[layer_].begin(), config_.dilation[layer_].end());
    pattern.tile_rows = tile_rows_;
    if (!bands_.empty()) plan_.band = PlanBand(pattern, bands_);
    std::vector<kernels::FullSequence> full;
    for (const GlobalGroup& group : plan_.unfolded_groups) {
      full.push_back({group.first, group.count, group.key_row0, group.tokens,
                      sequences_[group.sequence]->roles});
    }
    kernels::FullPattern full_pattern;
    full_pattern.heads = config_.heads;
    full_pattern.split = true;
    full_pattern.tile_rows = tile_rows_;
    if (!full.empty()) plan_.full = PlanFull(full_pattern, full);
  }

  const LongformerConfig& config_;
  const int layer_;
  const std::span<const EncoderSequence* const> sequences_;
  const std::span<const int32_t> offsets_;
  const bool subset_;
  const int tile_rows_;
  LayerPlan plan_;
  std::vector<BandSequence> bands_;
};

}  // namespace

bool FoldsGlobals(const LongformerConfig& config, int globals) {
  // Folding costs 2 g A n H multiply-adds in vector code, projecting 2 n H^2 in the faster
  // matrix product: the factor is their rates' ratio.
  constexpr int64_t kRateRatio = 4;
  return int64_t{globals} * config.heads * kRateRatio <= config.width;
}

LayerPlan PlanLayer(const LongformerConfig& config, int layer,
                    std::span<const EncoderSequence* const> sequences,
                    std::span<const int32_t> offsets, bool subset, int tile_rows) {
  return Builder(config, layer, sequences, offsets, subset, tile_rows).Build();
}

}  // namespace longview::models
