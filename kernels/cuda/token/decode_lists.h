// The host's side of a decode step: what kernels read of its tokens, in one layout on both sides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cache/cache_step.h"
#include "kernels/cache/schedule_strips.h"
#include "kernels/cuda/pool/pool_api.h"
#include "kernels/cuda/token/decode_room.h"
#include "kernels/cuda/token/decode_shape.h"
#include "kernels/cuda/token/token_api.h"

namespace longview::kernels::cuda {

// The token that a sequence was appended last.
struct DecodeToken {
  int32_t id = 0;
  const CacheSequence* sequence = nullptr;

  int32_t position() const { return static_cast<int32_t>(sequence->tokens() - 1); }
};

// A strip's blocks.
struct DecodeTable {
  int32_t* blocks;   // [TableBlocks]
  int32_t* offsets;  // [rows], for absolute slots.
};

// [rows] where nothing is said. Rows beyond the tokens read word 0 and are written nowhere.
struct DecodeLists {
  int32_t* ids;
  PoolRun* runs;
  int32_t* window_limits;  // Entries of the row's tables.
  int32_t* segment_limits;
  CacheRowPlace* window_rows;
  PoolRun* closing;                   // [closing] Segments that end with this step,
  CacheRowPlace* late_rows;           // [closing * rank] and where their pages go.
  CacheRowPlace* early_rows;          // [closing * rank] With early().
  std::array<DecodeTable, 3> tables;  // By strip, those that there are.
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
