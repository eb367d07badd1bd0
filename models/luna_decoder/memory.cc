#include "models/luna_decoder/memory.h"

#include <utility>
#include <vector>

#include "kernels/linear_attention/running_outer.h"

namespace longview::models {
namespace {

// A state's numbers are divided into columns, so many that what follows the columns' own is aligned
// as kernels read it.
constexpr int kColumns = 16;

int Column(int64_t floats) { return static_cast<int>((floats + kColumns - 1) / kColumns); }

kernels::CacheShape Shape(const LunaDecoderConfig& config, std::vector<int> widths) {
  kernels::CacheShape shape;
  shape.layers = config.layers;
  shape.strips = {kernels::WindowStrip(1)};
  shape.pool_columns = kColumns;
  shape.pool_widths = std::move(widths);
  return shape;
}

kernels::PoolState StateOf(const kernels::ProjectionCache& cache,
                           const kernels::CacheSequence& sequence) {
  const kernels::CacheShape& shape = cache.shape();
  return kernels::CarvePoolState(cache.StateAddress(sequence, 0), shape.pool_columns,
                                 shape.pool_widths);
}

}  // namespace

kernels::CacheShape LunaSequenceShape(const LunaDecoderConfig& config) {
  return Shape(
      config,
      {Column(kernels::OuterStateFloats(config.heads, config.head_dim(), config.projected))});
}

kernels::CacheShape LunaDocumentShape(const LunaDecoderConfig& config) {
  const int64_t packed =
      kernels::OuterPackedFloats(config.heads, config.head_dim(), config.projected);
  const int64_t keys = int64_t{config.projected} * KeyParts(config) * config.width;
  return Shape(config, {Column(packed), Column(keys)});
}

float* LunaSums(const kernels::ProjectionCache& cache, const kernels::CacheSequence& sequence) {
  return StateOf(cache, sequence).sums[0];
}

LunaDocumentMemory LunaDocumentOf(const kernels::ProjectionCache& cache,
                                  const kernels::CacheSequence& document) {
  const kernels::PoolState state = StateOf(cache, document);
  return {state.sums[0], state.sums[1]};
}

}  // namespace longview::models
