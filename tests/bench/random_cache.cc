#include "tests/bench/random_cache.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/cache/cache_step.h"

namespace longview::bench {
namespace {

using kernels::DType;

// Any order of random numbers is as good as rows in the layout of blocks.
std::vector<std::byte> RandomNumbers(int64_t count, DType dtype) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(static_cast<size_t>(count) * SizeOf(dtype));
  for (int64_t i = 0; i < count; ++i) {
    const float x = normal(random);
    if (dtype == DType::kFloat32) {
      reinterpret_cast<float*>(bytes.data())[i] = x;
    } else {
      reinterpret_cast<uint16_t*>(bytes.data())[i] = kernels::FloatToBFloat16(x);
    }
  }
  return bytes;
}

void Fill(const kernels::CacheShape& shape, const kernels::Source& source, int32_t block,
          const std::vector<std::byte>& numbers, std::mt19937* random) {
  const kernels::KvLayout layout = shape.layout();
  const size_t k_bytes = shape.kv_heads * layout.k_block_bytes();
  const size_t v_bytes = shape.kv_heads * layout.v_block_bytes();
  const auto from = [&](size_t bytes) {
    const size_t places = (numbers.size() - bytes) / SizeOf(shape.dtype);
    return numbers.data() + (*random)() % places * SizeOf(shape.dtype);
  };
  auto* k = static_cast<std::byte*>(const_cast<void*>(source.k)) + layout.KBlock(block, 0);
  auto* v = static_cast<std::byte*>(const_cast<void*>(source.v)) + layout.VBlock(block, 0);
  std::memcpy(k, from(k_bytes), k_bytes);
  std::memcpy(v, from(v_bytes), v_bytes);
}

}  // namespace

kernels::CacheSequence RandomSequence(kernels::ProjectionCache* cache, int64_t tokens,
                                      uint32_t seed) {
  const kernels::CacheShape& shape = cache->shape();
  kernels::CacheSequence sequence(cache);
  kernels::CacheStep step(cache);
  const std::vector<int32_t> ids(tokens, 1);
  if (!step.Append(kernels::CacheStep::kPrefill, &sequence, ids)) {
    std::fprintf(stderr, "no room for a sequence of %ld tokens\n", static_cast<long>(tokens));
    std::exit(1);
  }
  step.End();
  const size_t most = std::max(shape.layout().k_block_bytes(), shape.layout().v_block_bytes());
  const std::vector<std::byte> numbers = RandomNumbers(
      static_cast<int64_t>(shape.kv_heads * most / SizeOf(shape.dtype)) + 4096, shape.dtype);
  std::mt19937 random(seed);
  const kernels::CacheTable none;
  for (int strip = 0; strip < static_cast<int>(shape.strips.size()); ++strip) {
    for (int layer = 0; layer < shape.layers; ++layer) {
      const kernels::Source source = cache->PagedSource(strip, layer, none);
      for (int32_t block : sequence.blocks(strip).blocks) {
        Fill(shape, source, block * shape.layers, numbers, &random);
      }
    }
  }
  return sequence;
}

}  // namespace longview::bench
