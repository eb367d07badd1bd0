// How attention of a layer runs over a batch: the host side, built once per batch for layers with
// and without a class vector.
//
// Rows of a batch: the tokens of all sequences, then one class row per sequence.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/span/plan.h"
#include "models/encoder/ragged_batch.h"
#include "models/transformer_ls_text/config.h"

namespace longview::models {

struct LsTextPlan {
  bool has_class = false;
  // Every token over its sequence's projected keys and its window.
  // Sources: 0 projected rows, 1 tokens.
  kernels::Plan tokens;
  // The class rows over their own key and the outputs of the call above.
  // Sources: 0 class rows, 1 outputs of tokens.
  kernels::Plan class_rows;

  int64_t token_rows = 0;
  int64_t sequences = 0;
  int64_t landmarks = 0;  // Projected rows per sequence, the class vector's first.

  int64_t rows() const { return token_rows + (has_class ? sequences : 0); }
  int64_t projected_rows() const { return sequences * landmarks; }
};

LsTextPlan PlanLsText(const LsTextConfig& config, const RaggedBatch& batch, bool has_class,
                      int tile_rows);

}  // namespace longview::models
