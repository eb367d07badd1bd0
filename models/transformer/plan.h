// Attention plans of a batch's layers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/span/plan.h"
#include "models/encoder/ragged_batch.h"
#include "models/transformer/config.h"

namespace longview::models {

struct TransformerPlan {
  // By window, for the layers whose every row is computed.
  std::map<int, kernels::Plan> layers;
  // The last layer: wanted rows alone, side by side.
  kernels::Plan wanted;
  std::vector<int32_t> wanted_rows;     // Rows of the batch that are wanted, ascending.
  std::vector<int64_t> wanted_offsets;  // The first of each sequence; one entry more.
};

TransformerPlan PlanTransformer(const TransformerConfig& config, const RaggedBatch& batch,
                                int tile_rows);

}  // namespace longview::models
