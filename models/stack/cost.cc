#include "models/stack/cost.h"

#include <algorithm>
#include <utility>

#include "models/generation/host_token_pass.h"
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
  const double row_bytes = 4.0 * context_.config->vocab;
  if (room_.host == nullptr) return row_bytes * (sequences + (prefill_tokens > 0 ? 1 : 0));
  const StackDocument document = {nullptr, room_.most_keys};
  LongestRuns longest(room_.max_tokens, prefill_tokens, sequences, room_.max_tokens - 1);
  const int64_t wanted = WantedRows(longest.runs);
  StackPass pass(context_, std::move(longest.runs), wanted,
                 [&](const TokenRun&) { return &document; });
  return HostTokenPass::WorkspaceBytes(pass, *room_.host) +
         row_bytes * static_cast<double>(wanted);
}

}  // namespace longview::models
