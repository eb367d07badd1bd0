// Plans of a decode step, cut for a GPU: one query per sequence gives too few blocks to fill it, so
// long key lists become pieces that are merged afterwards.
//
// Paged sources are cut at multiples of kDecodePiece slots of their own grid, which begins with the
// sequence: pieces are a property of the sequence, never of the batch or the device, and a row's
// bits with them.
//
// Stateless: thread-safe.
#pragma once

#include "kernels/span/plan.h"

namespace longview::kernels::cuda {

// Slots of a piece: enough work to outweigh its merge, and a divisor of kSplitSlots.
inline constexpr int kDecodePiece = 512;

// Returns a plan of the same attention with every tile's spans as pieces. Neighbouring spans of one
// piece of one source stay together; spans of sources that are not paged are pieces of their own. A
// tile of one piece writes final rows.
Plan CutForDecode(const Plan& plan);

}  // namespace longview::kernels::cuda
