#include "tests/bench/random_cache.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/base/check.h"
#include "kernels/cache/cache_step.h"

namespace longview::bench {
namespace {

using kernels::CacheShape;
using kernels::DType;

void Store(DType dtype, float value, std::byte* numbers, size_t at) {
  switch (dtype) {
    case DType::kFloat32:
      reinterpret_cast<float*>(numbers)[at] = value;
      break;
    case DType::kBFloat16:
      reinterpret_cast<uint16_t*>(numbers)[at] = kernels::FloatToBFloat16(value);
      break;
    case DType::kFloat16:
      reinterpret_cast<_Float16*>(numbers)[at] = static_cast<_Float16>(value);
      break;
  }
}

// Any order of random numbers is as good as rows in the layout of blocks.
std::vector<std::byte> RandomNumbers(size_t count, DType dtype) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(count * SizeOf(dtype));
  for (size_t i = 0; i < count; ++i) Store(dtype, normal(random), bytes.data(), i);
  return bytes;
}

// A block's keys and values, of all layers and heads.
struct BlockPlace {
  std::byte* k;
  std::byte* v;
};
size_t KeyBytes(const CacheShape& shape) {
  return static_cast<size_t>(shape.layers * shape.kv_heads) * shape.KeyBytes();
}
size_t ValueBytes(const CacheShape& shape) {
  return static_cast<size_t>(shape.layers * shape.kv_heads) * shape.ValueBytes();
}
BlockPlace PlaceOf(const kernels::ProjectionCache& cache, int strip, int32_t block) {
  const kernels::Source first = cache.PagedSource(strip, 0, kernels::CacheTable());
  const auto at = [&](const void* area, size_t bytes) {
    return static_cast<std::byte*>(const_cast<void*>(area)) + static_cast<size_t>(block) * bytes;
  };
  return {at(first.k, KeyBytes(cache.shape())), at(first.v, ValueBytes(cache.shape()))};
}

int Strips(const kernels::ProjectionCache& cache) {
  return static_cast<int>(cache.shape().strips.size());
}

// One block of a strip as rows, [layers][heads][64][pitch]; slots that nobody filled are zeros.
class BlockOfRows {
 public:
  explicit BlockOfRows(const CacheShape& shape)
      : shape_(shape), k_(KeyBytes(shape)), v_(ValueBytes(shape)) {}

  void Read(const kernels::ProjectionCache& from, const kernels::CacheSequence& sequence, int strip,
            int64_t block) {
    std::ranges::fill(k_, std::byte{0});
    std::ranges::fill(v_, std::byte{0});
    const int64_t first = block * kernels::kBlockSlots;
    const int64_t last =
        std::min(first + kernels::kBlockSlots, shape_.Slots(strip, sequence.tokens()));
    std::vector<float> key(static_cast<size_t>(shape_.Dk)), value(static_cast<size_t>(shape_.Dv));
    for (int layer = 0; layer < shape_.layers; ++layer) {
      for (int head = 0; head < shape_.kv_heads; ++head) {
        for (int64_t slot = first; slot < last; ++slot) {
          from.ReadRow(sequence, strip, layer, slot, head, key.data(), value.data());
          Put(key, shape_.KeyBytes(), layer, head, slot - first, k_);
          Put(value, shape_.ValueBytes(), layer, head, slot - first, v_);
        }
      }
    }
  }

  const std::vector<std::byte>& k() const { return k_; }
  const std::vector<std::byte>& v() const { return v_; }

 private:
  void Put(const std::vector<float>& row, size_t head_bytes, int layer, int head, int64_t slot,
           std::vector<std::byte>& block) const {
    const size_t row_bytes = head_bytes / kernels::kBlockSlots;
    const size_t begin = static_cast<size_t>(layer * shape_.kv_heads + head) * head_bytes +
                         static_cast<size_t>(slot) * row_bytes;
    for (size_t d = 0; d < row.size(); ++d) Store(shape_.dtype, row[d], block.data() + begin, d);
  }

  const CacheShape& shape_;
  std::vector<std::byte> k_, v_;
};

}  // namespace

void PutOnHost(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

kernels::CacheSequence BlankSequence(kernels::ProjectionCache* cache, int64_t tokens) {
  kernels::CacheSequence sequence(cache);
  kernels::CacheStep step(cache);
  const std::vector<int32_t> ids(static_cast<size_t>(tokens), 1);
  if (!step.Append(kernels::CacheStep::kPrefill, &sequence, ids)) {
    std::fprintf(stderr, "no room for a sequence of %ld tokens\n", static_cast<long>(tokens));
    std::exit(1);
  }
  return sequence;
}

kernels::CacheSequence RandomSequence(kernels::ProjectionCache* cache, int64_t tokens,
                                      uint32_t seed, const PutBytes& put) {
  const CacheShape& shape = cache->shape();
  kernels::CacheSequence sequence = BlankSequence(cache, tokens);
  const size_t k_bytes = KeyBytes(shape), v_bytes = ValueBytes(shape);
  constexpr size_t kPlaces = 4096;  // Number of offsets at which a block's numbers may begin.
  const std::vector<std::byte> numbers =
      RandomNumbers(std::max(k_bytes, v_bytes) / SizeOf(shape.dtype) + kPlaces, shape.dtype);
  std::mt19937 random(seed);
  const auto any = [&] { return numbers.data() + random() % kPlaces * SizeOf(shape.dtype); };
  for (int strip = 0; strip < Strips(*cache); ++strip) {
    for (const int32_t block : sequence.blocks(strip).blocks) {
      const BlockPlace place = PlaceOf(*cache, strip, block);
      put(place.k, any(), k_bytes);
      put(place.v, any(), v_bytes);
    }
  }
  return sequence;
}

kernels::CacheSequence CopiedSequence(const kernels::ProjectionCache& from,
                                      const kernels::CacheSequence& sequence,
                                      kernels::ProjectionCache* to, const PutBytes& put) {
  kernels::CacheSequence copy = BlankSequence(to, sequence.tokens());
  BlockOfRows rows(to->shape());
  for (int strip = 0; strip < Strips(*to); ++strip) {
    const kernels::BlockList& blocks = copy.blocks(strip);
    KERNEL_CHECK(blocks.first == sequence.blocks(strip).first);
    for (size_t i = 0; i < blocks.blocks.size(); ++i) {
      rows.Read(from, sequence, strip, blocks.first + static_cast<int64_t>(i));
      const BlockPlace place = PlaceOf(*to, strip, blocks.blocks[i]);
      put(place.k, rows.k().data(), rows.k().size());
      put(place.v, rows.v().data(), rows.v().size());
    }
  }
  return copy;
}

}  // namespace longview::bench
