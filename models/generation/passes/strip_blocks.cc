#include "models/generation/passes/strip_blocks.h"

#include "models/ops/cache_rows.h"

#include <algorithm>

namespace longview::models {

void AddTable(const kernels::CacheTable& table, std::vector<int32_t>& blocks,
              std::vector<int32_t>& offsets) {
  const auto before = static_cast<int32_t>(blocks.size());
  blocks.insert(blocks.end(), table.blocks.begin(), table.blocks.end());
  for (size_t s = 0; s < table.first_block.size(); ++s) {
    offsets.push_back(before + table.offsets[s] - table.first_block[s]);
  }
}

void StripBlocks::List(const kernels::CacheStep* step, const kernels::CacheShape& shape, int strip,
                       const RunGroup& group, std::span<const TokenRun> runs) {
  blocks_.clear();
  offsets_.clear();
  if (step != nullptr) {
    AddTable(step->table(group.group, strip), blocks_, offsets_);
    RoundUpBlocks(group, blocks_);
    const std::span<const kernels::CachePlace> places = step->places(group.group, strip);
    listed_.assign(places.begin(), places.end());
    return;
  }
  int64_t rows = 0;
  for (int i = group.run0; i < group.run0 + group.runs; ++i) {
    const TokenRun& run = runs[static_cast<size_t>(i)];
    const int64_t slots = shape.Slots(strip, run.start + run.rows());
    const int64_t read = (slots + kernels::kBlockSlots - 1) / kernels::kBlockSlots;
    blocks_.resize(blocks_.size() + static_cast<size_t>(std::min(shape.MaxBlocks(strip), read)));
    offsets_.push_back(0);
    rows += slots - shape.Slots(strip, run.start);
  }
  RoundUpBlocks(group, blocks_);
  listed_.assign(static_cast<size_t>(rows), kernels::CachePlace());
}

void StripBlocks::Stage(Backend& backend, const kernels::ProjectionCache* cache) {
  blocks_ref_ = StageBlocks(backend, blocks_, offsets_);
  places_ref_ = StagePlaces(backend, cache, listed_);
}

}  // namespace longview::models
