#include "models/decoder_stack/stack.h"

#include <algorithm>

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

int StackWindow::span() const {
  if (!keys) return 0;
  const int widest = dilation.empty() ? 1 : *std::max_element(dilation.begin(), dilation.end());
  return *keys * widest + 1;
}

int StackConfig::longest_span() const {
  int longest = 1;
  for (const StackWindow& window : windows) {
    if (window.span() == 0) return 0;
    longest = std::max(longest, window.span());
  }
  return longest;
}

kernels::CacheShape StackCacheShape(const StackConfig& config, kernels::DType blocks) {
  return KeysShape(config, blocks, config.longest_span());
}

kernels::CacheShape DocumentCacheShape(const StackConfig& config, kernels::DType blocks) {
  return KeysShape(config, blocks, 0);
}

}  // namespace longview::models
