#include "models/cst/lm_cost.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/cst/lm_pass.h"

namespace longview::models {

// A slice's projections and its pooling are shared by its L tokens.
double CstLmCosts::LinearWork() const {
  const CstConfig& config = *context_.config;
  const double d = config.width, f = config.intermediate, slice = config.slice;
  double work = 3 * d * d + 3 * d * d / slice + 2 * d * f;
  if (config.output_projection) work += d * d;
  if (config.slice_pooling == CstPooling::kLinear) work += d * d;
  work *= config.layers;
  if (config.embedding_width != config.width) work += d * config.embedding_width;
  return work;
}

double CstLmCosts::AttentionWork(int64_t t) const {
  const CstConfig& config = *context_.config;
  const double d = config.width;
  const auto place = static_cast<double>(t % config.slice + 1);
  const double keys = std::min(static_cast<double>(t + 1), place + config.extension);
  const double slices = static_cast<double>(t / config.slice) / config.slice;
  return config.layers * d * ((config.relative_keys() ? 3 : 2) * keys + 2 * slices + 1);
}

double CstLmCosts::RowWork() const {
  const CstConfig& config = *context_.config;
  return config.layers * (7.0 * config.width + config.intermediate);
}

double CstLmCosts::StateBytes(int64_t shared, int64_t longest, int sequences) const {
  return static_cast<double>(shape_.SequenceBytes(shared, longest, sequences));
}

// At the end of the longest text, where a step reads most; of a decode step, at a token that ends
// its slice.
double CstLmCosts::WorkspaceBytes(int64_t prefill_tokens, int sequences) const {
  const CstConfig& config = *context_.config;
  const int64_t last = std::max<int64_t>(max_tokens_ / config.slice * config.slice - 1, 0);
  LongestRuns longest(max_tokens_, prefill_tokens, sequences, last);
  const CstPassLayout layout = CstLmPass::LayOut(context_, std::move(longest.runs));
  // Two results of one panel are alive at a time: the expanded one and what follows it.
  const int64_t widest = std::max(3 * config.width, config.intermediate + config.width);
  const int64_t outputs = config.vocab + static_cast<int64_t>(config.cutoffs.size());
  const int64_t panels =
      kPanelRows * std::max<int64_t>(widest, outputs) * ElementBytes(context_.compute);
  double logits = 4.0 * config.vocab * static_cast<double>(layout.wanted);
  if (!config.cutoffs.empty())
    logits += 4.0 * static_cast<double>(outputs) * context_.pool->threads();
  return static_cast<double>(CstLmPass::ScratchBytes(context_, layout)) +
         static_cast<double>(panels) + logits;
}

}  // namespace longview::models
