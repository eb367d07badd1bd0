#include "models/stack/cost.h"

#include <algorithm>
#include <vector>

#include "models/stack/pass.h"

namespace longview::models {
namespace {

kernels::CacheShape KeysShape(const StackConfig& config, kernels::DType blocks, int keep) {
  kernels::CacheShape shape;
  shape.layers = config.layers();
  shape.kv_heads = config.heads;
  shape.Dk = shape.Dv = config.head_dim();
  shape.dtype = blocks;
  shape.strips = {kernels::WindowStrip(keep)};
  return shape;
}

}  // namespace

kernels::CacheShape StackCacheShape(const StackConfig& config, kernels::DType blocks) {
  return KeysShape(config, blocks, config.longest_span());
}

kernels::CacheShape DocumentCacheShape(const StackConfig& config, kernels::DType blocks) {
  return KeysShape(config, blocks, 0);
}

double StackCosts::LinearWork() const {
  const StackConfig& config = *context_.config;
  const double width = config.width;
  const double squares = config.encoder ? 6 : 4;
  return config.layers() * (squares * width * width + 2 * width * config.intermediate);
}

double StackCosts::AttentionWork(int64_t t) const {
  const StackConfig& config = *context_.config;
  double keys = 0;
  for (const StackWindow& window : config.windows) {
    const int64_t span = window.span() == 0 ? t + 1 : std::min<int64_t>(t + 1, window.span());
    keys += static_cast<double>(span);
  }
  return 2.0 * config.width * keys;
}

double StackDocumentWork(const StackConfig& config, int64_t keys) {
  return 2.0 * config.width * config.layers() * static_cast<double>(keys);
}

double StackCosts::RowWork() const {
  const StackConfig& config = *context_.config;
  return config.layers() * (8.0 * config.width + config.intermediate);
}

double StackCosts::StateBytes(int64_t shared, int64_t longest, int sequences) const {
  return static_cast<double>(shape_.SequenceBytes(shared, longest, sequences));
}

// At the end of the longest text, where a step reads most.
double StackCosts::WorkspaceBytes(int64_t prefill_tokens, int sequences) const {
  const StackDocument document = {nullptr, most_keys_};
  LongestRuns longest(max_tokens_, prefill_tokens, sequences, max_tokens_ - 1);
  const StackPassLayout layout = LayOutStackPass(context_, std::move(longest.runs),
                                                 [&](const TokenRun&) { return &document; });
  // Two results of one panel are alive at a time: the expanded one and what follows it.
  const StackConfig& config = *context_.config;
  const int64_t widest = std::max(3 * config.width, config.intermediate + config.width);
  const int64_t panels =
      kPanelRows * std::max<int64_t>(widest, config.vocab) * ElementBytes(context_.compute);
  const double logits = 4.0 * config.vocab * static_cast<double>(layout.wanted);
  return static_cast<double>(StackPass::ScratchBytes(context_, layout)) +
         static_cast<double>(panels) + logits;
}

}  // namespace longview::models
