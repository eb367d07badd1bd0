#include "models/luna/plan.h"

#include <algorithm>

#include "kernels/span/full_planner.h"

namespace longview::models {

int ActiveRows(const LunaConfig& config, const EncoderSequence& sequence) {
  if (!config.dynamic) return config.projected;
  const auto masked =
      std::count(sequence.roles.begin(), sequence.roles.end(), kernels::kMaskedToken);
  return std::min(config.projected, sequence.tokens() - static_cast<int>(masked));
}

LunaPlan PlanLuna(const LunaConfig& config, const RaggedBatch& batch, int tile_rows) {
  LunaPlan plan;
  plan.projected_offsets = {0};
  plan.wanted_offsets = {0};
  std::vector<kernels::FullSequence> pack, unpack, wanted;
  for (int s = 0; s < batch.size(); ++s) {
    const EncoderSequence& sequence = *batch.sequences()[s];
    const int32_t row0 = batch.offsets()[s];
    const int32_t projected0 = plan.projected_offsets.back();
    const auto active = static_cast<int32_t>(ActiveRows(config, sequence));
    const auto outputs = static_cast<int32_t>(sequence.wanted.size());
    pack.push_back({projected0, active, row0, sequence.tokens(), sequence.roles});
    unpack.push_back({row0, sequence.tokens(), projected0, active, {}});
    wanted.push_back({plan.wanted_offsets.back(), outputs, projected0, active, {}});
    for (const int32_t token : sequence.wanted) plan.wanted_rows.push_back(row0 + token);
    plan.projected_offsets.push_back(projected0 + active);
    plan.wanted_offsets.push_back(plan.wanted_offsets.back() + outputs);
  }
  kernels::FullPattern pattern;
  pattern.tile_rows = tile_rows;
  pattern.heads = config.heads;
  plan.unpack = PlanFull(pattern, unpack);
  plan.unpack_wanted = PlanFull(pattern, wanted);
  pattern.heads = config.pack_heads;
  pattern.split = true;
  plan.pack = PlanFull(pattern, pack);
  return plan;
}

}  // namespace longview::models
