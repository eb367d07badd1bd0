// The blocks of one strip of a cache that a group of runs reads, and the places that its new rows
// take there, as a forward stages them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "models/generation/decoder/token_run.h"
#include "models/ops/backend.h"
#include "models/ops/cache_rows.h"

namespace longview::models {

class StripBlocks {
 public:
  // Lists the blocks and places of `step`; null: as many as the runs may have, for counting.
  void List(const kernels::CacheStep* step, const kernels::CacheShape& shape, int strip,
            const RunGroup& group, std::span<const TokenRun> runs);
  // `cache` may be null where the forward is counted.
  void Stage(Backend& backend, const kernels::ProjectionCache* cache);

  // Once staged.
  const BlocksRef& blocks() const { return blocks_ref_; }
  const PlacesRef& places() const { return places_ref_; }

 private:
  std::vector<int32_t> blocks_, offsets_;  // Offsets for absolute slots.
  std::vector<kernels::CachePlace> listed_;
  BlocksRef blocks_ref_;
  PlacesRef places_ref_;
};

// Adds a table's lists, its offsets for absolute slots.
void AddTable(const kernels::CacheTable& table, std::vector<int32_t>& blocks,
              std::vector<int32_t>& offsets);

}  // namespace longview::models
