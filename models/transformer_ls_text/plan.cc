#include "models/transformer_ls_text/plan.h"

#include <algorithm>
#include <vector>

#include "kernels/span/full_planner.h"
#include "kernels/span/segment_planner.h"

namespace longview::models {
namespace {

kernels::SegmentPattern TokenPattern(const LsTextConfig& config, int tile_rows) {
  kernels::SegmentPattern pattern;
  pattern.heads = config.heads;
  pattern.window = config.window;
  pattern.extension = config.window > 0 ? std::max(config.window / 2, 1) : 0;
  // Neither window nor projection: a token sees itself, beside the class vector.
  if (config.window == 0 && config.rank == 0) pattern.window = 1;
  pattern.tile_rows = tile_rows;
  return pattern;
}

}  // namespace

LsTextPlan PlanLsText(const LsTextConfig& config, const RaggedBatch& batch, bool has_class,
                      int tile_rows) {
  LsTextPlan plan;
  plan.has_class = has_class;
  plan.token_rows = batch.rows();
  plan.sequences = batch.size();
  plan.landmarks = config.rank + (has_class ? 1 : 0);
  std::vector<kernels::SegmentSequence> tokens;
  std::vector<kernels::FullSequence> class_rows;
  for (int s = 0; s < batch.size(); ++s) {
    const EncoderSequence& sequence = *batch.sequences()[s];
    const int32_t row0 = batch.offsets()[s];
    const auto landmarks = static_cast<int32_t>(plan.landmarks);
    tokens.push_back({row0, sequence.tokens(), s * landmarks, landmarks, sequence.roles});
    const auto class_row = static_cast<int32_t>(plan.token_rows) + s;
    class_rows.push_back({class_row, 1, row0, sequence.tokens(), sequence.roles, class_row, 1});
  }
  plan.tokens = PlanSegments(TokenPattern(config, tile_rows), tokens);
  if (!has_class) return plan;
  kernels::FullPattern full;
  full.heads = config.heads;
  full.split = true;
  full.own_keys = true;
  full.tile_rows = tile_rows;
  plan.class_rows = PlanFull(full, class_rows);
  return plan;
}

}  // namespace longview::models
