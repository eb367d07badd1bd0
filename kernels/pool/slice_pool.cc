#include "kernels/pool/slice_pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/base/check.h"

namespace longview::kernels {
namespace {

constexpr int kLanes = 16;
constexpr int kBlock = 4 * kLanes;  // Channels that stay in registers while rows go by.
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using Halves = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

// One block of channels of one piece; all pointers stand at the block's first channel.
struct Block {
  const std::byte* rows = nullptr;
  int64_t row_bytes = 0;
  int32_t count = 0;                 // Rows.
  const uint8_t* visible = nullptr;  // Visibility of the piece's rows; may be null.
  int channels = 0;                  // At most kBlock.
  bool begins = true;
  int32_t divisor = 0;
  float* out = nullptr;
};

[[gnu::always_inline]] inline void LoadRow(const std::byte* row, int channels, DType dtype,
                                           Floats (&values)[kBlock / kLanes]) {
  if (dtype == DType::kFloat32) {
    std::memcpy(values, row, static_cast<size_t>(channels) * sizeof(float));
    return;
  }
  Halves bits[kBlock / kLanes] = {};
  std::memcpy(bits, row, static_cast<size_t>(channels) * sizeof(uint16_t));
  for (int i = 0; i < kBlock / kLanes; ++i) {
    values[i] = reinterpret_cast<Floats>(__builtin_convertvector(bits[i], Words) << 16);
  }
}

// Called with constants, so that whole blocks copy without a length and nothing is chosen inside.
[[gnu::always_inline]] inline void PoolBlock(const Block& block, int channels, SlicePooling pooling,
                                             DType dtype) {
  Floats result[kBlock / kLanes] = {};
  const auto bytes = static_cast<size_t>(channels) * sizeof(float);
  if (!block.begins) std::memcpy(result, block.out, bytes);
  bool empty = block.begins;
  for (int32_t r = 0; r < block.count; ++r) {
    if (block.visible != nullptr && block.visible[r] == 0) continue;
    Floats values[kBlock / kLanes] = {};
    LoadRow(block.rows + r * block.row_bytes, channels, dtype, values);
    for (int i = 0; i < kBlock / kLanes; ++i) {
      if (pooling == SlicePooling::kMean) {
        result[i] += values[i];
      } else {
        const auto takes = empty || values[i] > result[i] || values[i] != values[i];
        result[i] = takes ? values[i] : result[i];
      }
    }
    empty = false;
  }
  if (pooling == SlicePooling::kMean && block.divisor > 0) {
    for (Floats& part : result) part /= static_cast<float>(block.divisor);
  }
  std::memcpy(block.out, result, bytes);
}

template <SlicePooling kPooling, DType kType>
[[gnu::always_inline]] inline void PoolAny(const Block& block) {
  if (block.channels == kBlock) {
    PoolBlock(block, kBlock, kPooling, kType);
  } else {
    PoolBlock(block, block.channels, kPooling, kType);
  }
}

// One body, compiled for the widths a server meets; the loader picks one per process, so bits
// never depend on the call.
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void Pool(
    const Block& block, SlicePooling pooling, DType dtype) {
  const bool mean = pooling == SlicePooling::kMean;
  if (dtype == DType::kFloat32) {
    mean ? PoolAny<SlicePooling::kMean, DType::kFloat32>(block)
         : PoolAny<SlicePooling::kMax, DType::kFloat32>(block);
  } else {
    mean ? PoolAny<SlicePooling::kMean, DType::kBFloat16>(block)
         : PoolAny<SlicePooling::kMax, DType::kBFloat16>(block);
  }
}

}  // namespace

void PoolSlices(const SlicePoolCall& call, const ParallelFor& pool) {
  KERNEL_CHECK(call.channels >= 1);
  const int64_t blocks = (call.channels + kBlock - 1) / kBlock;
  const int64_t items = static_cast<int64_t>(call.pieces.size()) * blocks;
  std::atomic<int64_t> next{0};
  // A piece is small: several at a time.
  constexpr int64_t kGrain = 16;
  RunOnThreads(pool, [&](int) {
    for (int64_t from = next.fetch_add(kGrain); from < items; from = next.fetch_add(kGrain)) {
      for (int64_t item = from; item < std::min(items, from + kGrain); ++item) {
        const SlicePiece& piece = call.pieces[static_cast<size_t>(item / blocks)];
        const auto channel = static_cast<int>(item % blocks * kBlock);
        Block block;
        block.row_bytes = call.row_stride * static_cast<int64_t>(SizeOf(call.dtype));
        block.rows = static_cast<const std::byte*>(call.rows) + piece.row0 * block.row_bytes +
                     channel * static_cast<int64_t>(SizeOf(call.dtype));
        block.count = piece.rows;
        block.visible = call.visible == nullptr ? nullptr : call.visible + piece.row0;
        block.channels = std::min(kBlock, call.channels - channel);
        block.begins = piece.begins;
        block.divisor = piece.divisor;
        block.out = piece.out + channel;
        Pool(block, call.pooling, call.dtype);
      }
    }
  });
}

}  // namespace longview::kernels
