// How Luna's two attentions run over a batch: the host side, built once for all layers.
//
// Rows: the tokens of all sequences in one tensor, their active rows of P in another.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/span/plan.h"
#include "models/encoder/ragged_batch.h"
#include "models/luna/config.h"

namespace longview::models {

struct LunaPlan {
  // Rows of P over all tokens of their sequence; masked tokens are no keys. Splits long documents.
  kernels::Plan pack;
  // Every token over its sequence's packed rows.
  kernels::Plan unpack;
  // `unpack` for wanted tokens only, side by side in their order: the last layer.
  kernels::Plan unpack_wanted;

  std::vector<int32_t> projected_offsets;  // Rows of P; one entry more than sequences.
  std::vector<int32_t> wanted_rows;        // Row of the batch per wanted token.
  std::vector<int32_t> wanted_offsets;     // Begin of each sequence in wanted_rows; one entry more.

  int64_t projected_rows() const { return projected_offsets.back(); }
  int64_t wanted() const { return static_cast<int64_t>(wanted_rows.size()); }
};

// Rows of P that a sequence uses: its own length decides, never the batch.
int ActiveRows(const LunaConfig& config, const EncoderSequence& sequence);

LunaPlan PlanLuna(const LunaConfig& config, const RaggedBatch& batch, int tile_rows);

}  // namespace longview::models
