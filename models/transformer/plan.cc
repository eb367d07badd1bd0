#include "models/transformer/plan.h"

#include <algorithm>

#include "kernels/span/band_planner.h"
#include "kernels/span/full_planner.h"

namespace longview::models {
namespace {

// Every row, or the wanted ones alone: those lie at `wanted_offsets` of the queries.
class Planner {
 public:
  Planner(const TransformerConfig& config, const RaggedBatch& batch, int tile_rows)
      : config_(config), batch_(batch), tile_rows_(tile_rows) {}

  kernels::Plan Plan(int window, const std::vector<int64_t>* wanted_offsets) const {
    return window < 0 ? Full(wanted_offsets) : Band(window, wanted_offsets);
  }

 private:
  kernels::Plan Band(int window, const std::vector<int64_t>* wanted_offsets) const {
    kernels::BandPattern pattern;
    pattern.heads = config_.heads;
    pattern.window_left = pattern.window_right = window;
    pattern.tile_rows = tile_rows_;
    std::vector<kernels::BandSequence> sequences;
    for (int s = 0; s < batch_.size(); ++s) {
      const EncoderSequence& from = *batch_.sequences()[s];
      kernels::BandSequence& to = sequences.emplace_back();
      to.row0 = batch_.offsets()[s];
      to.tokens = from.tokens();
      to.roles = from.roles;
      if (wanted_offsets == nullptr) continue;
      to.wanted = &from.wanted;
      to.query_row0 = static_cast<int32_t>((*wanted_offsets)[s]);
    }
    return PlanBand(pattern, sequences);
  }

  // Wanted rows need not be neighbours, but each sees every key: any rows of a document are alike.
  kernels::Plan Full(const std::vector<int64_t>* wanted_offsets) const {
    kernels::FullPattern pattern;
    pattern.heads = config_.heads;
    pattern.tile_rows = tile_rows_;
    std::vector<kernels::FullSequence> sequences;
    for (int s = 0; s < batch_.size(); ++s) {
      const EncoderSequence& from = *batch_.sequences()[s];
      kernels::FullSequence& to = sequences.emplace_back();
      to.query_row0 = to.key_row0 = batch_.offsets()[s];
      to.queries = to.keys = from.tokens();
      const bool holes = std::find(from.roles.begin(), from.roles.end(), kernels::kMaskedToken) !=
                         from.roles.end();
      if (holes) to.visible = from.roles;
      if (wanted_offsets == nullptr) continue;
      to.query_row0 = static_cast<int32_t>((*wanted_offsets)[s]);
      to.queries = static_cast<int32_t>(from.wanted.size());
    }
    return PlanFull(pattern, sequences);
  }

  const TransformerConfig& config_;
  const RaggedBatch& batch_;
  const int tile_rows_;
};

}  // namespace

TransformerPlan PlanTransformer(const TransformerConfig& config, const RaggedBatch& batch,
                                int tile_rows) {
  TransformerPlan plan;
  plan.wanted_offsets = {0};
  for (int s = 0; s < batch.size(); ++s) {
    const EncoderSequence& sequence = *batch.sequences()[s];
    for (const int32_t token : sequence.wanted) {
      plan.wanted_rows.push_back(batch.offsets()[s] + token);
    }
    plan.wanted_offsets.push_back(static_cast<int64_t>(plan.wanted_rows.size()));
  }
  const Planner planner(config, batch, tile_rows);
  for (size_t i = 0; i + 1 < config.layers.size(); ++i) {
    const int window = config.layers[i].window;
    if (!plan.layers.contains(window)) plan.layers[window] = planner.Plan(window, nullptr);
  }
  plan.wanted = planner.Plan(config.layers.back().window, &plan.wanted_offsets);
  return plan;
}

}  // namespace longview::models
