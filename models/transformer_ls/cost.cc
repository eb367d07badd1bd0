#include "models/transformer_ls/cost.h"

#include <algorithm>
#include <utility>

namespace longview::models {

double LsLinearWork(const LsLmConfig& config) {
  const double width = config.width;
  return config.layers * (width * (4 * width + config.columns()) + 2 * width * config.intermediate);
}

double LsAttentionWork(const LsLmConfig& config, int64_t t) {
  return 3.0 * config.layers * config.width * static_cast<double>(config.pattern().VisibleKeys(t));
}

double LsWork::RowWork() const {
  return config_.layers * (8.0 * config_.width + config_.intermediate + config_.columns());
}

// At the end of the longest text, where a step reads most.
double LsCosts::WorkspaceBytes(int64_t prefill_tokens, int sequences) const {
  LongestRuns longest(max_tokens_, prefill_tokens, sequences, max_tokens_ - 1);
  const LsPassLayout layout = LsPass::LayOut(context_, std::move(longest.runs));
  // Two results of one panel are alive at a time: the expanded one and what follows it.
  const LsLmConfig& config = *context_.config;
  const int64_t widest =
      std::max(3 * config.width + config.columns(), config.intermediate + config.width);
  const int64_t panels =
      kPanelRows * std::max<int64_t>(widest, config.vocab) * ElementBytes(context_.compute);
  const double logits = 4.0 * config.vocab * static_cast<double>(layout.wanted);
  return static_cast<double>(LsPass::ScratchBytes(context_, layout)) + static_cast<double>(panels) +
         logits;
}

}  // namespace longview::models
