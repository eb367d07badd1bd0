#include "models/transformer_ls/cost.h"

#include <utility>

#include "models/generation/host_token_pass.h"
#include "models/transformer_ls/pass.h"

namespace longview::models {

double LsCosts::LinearWork() const {
  const LsLmConfig& config = *context_.config;
  const double width = config.width;
  return config.layers * (width * (4 * width + config.columns()) + 2 * width * config.intermediate);
}

// Scores, positions and sums.
double LsCosts::AttentionWork(int64_t t) const {
  const LsLmConfig& config = *context_.config;
  return 3.0 * config.layers * config.width * static_cast<double>(config.pattern().VisibleKeys(t));
}

double LsCosts::RowWork() const {
  const LsLmConfig& config = *context_.config;
  return config.layers * (8.0 * config.width + config.intermediate + config.columns());
}

// At the end of the longest text, where a step reads most.
double LsCosts::WorkspaceBytes(int64_t prefill_tokens, int sequences) const {
  const double row_bytes = 4.0 * context_.config->vocab;
  if (host_ == nullptr) return row_bytes * (sequences + (prefill_tokens > 0 ? 1 : 0));
  LongestRuns longest(max_tokens_, prefill_tokens, sequences, max_tokens_ - 1);
  const int64_t wanted = WantedRows(longest.runs);
  LsPass pass(context_, std::move(longest.runs), wanted);
  return HostTokenPass::WorkspaceBytes(pass, *host_) + row_bytes * static_cast<double>(wanted);
}

}  // namespace longview::models
