// The host's side of a decode step: what kernels read of its tokens, in one layout on both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cache/cache_step.h"
#include "kernels/cuda/pool/pool_api.h"
#include "kernels/cuda/token/decode_room.h"
#include "kernels/cuda/token/decode_shape.h"
#include "kernels/cuda/token/token_api.h"

namespace longview::kernels::cuda {

inline constexpr int kDecodeWindowStrip = 0, kDecodePageStrip = 1;

// The token that a sequence was appended last.
struct DecodeToken {
  int32_t id = 0;
  const CacheSequence* sequence = nullptr;

  int32_t position() const { return static_cast<int32_t>(sequence->tokens() - 1); }
};

// [rows] where nothing is said. Rows beyond the tokens read word 0 and are written nowhere.
struct DecodeLists {
  int32_t* ids;
  PoolRun* runs;
  CacheRowPlace* window_rows;
  CacheRowPlace* page_rows;  // [rows * rank]
  int32_t* window_limits;    // Entries of the row's tables.
  int32_t* page_limits;
  int32_t* window_blocks;   // [WindowBlocks]
  int32_t* window_offsets;  // For absolute slots.
  int32_t* page_blocks;     // [PageBlocks]
  int32_t* page_offsets;
  std::byte* plan;
};

// Places in `memory`; null: none, but `*bytes` of them.
DecodeLists CarveDecodeLists(const DecodeShape& shape, const CacheShape& cache,
                             const DecodeRoom& room, std::byte* memory, size_t* bytes);

// All of a step's lists, in host memory; see DecodeStep about `cache`, `step` and `tokens`.
void WriteDecodeLists(const DecodeShape& shape, const ProjectionCache& cache, const CacheStep& step,
                      std::span<const DecodeToken> tokens, const DecodePlan& planned,
                      const DecodeLists& to);

}  // namespace longview::kernels::cuda
