// Local attention of the autoregressive Composite Slice Transformer (Lee et al. 2023, section 3.3)
// while it generates: a query at position t sees the tokens of its slice up to itself and the
// `extension` tokens before the slice, from cached blocks and from the chunk's own rows.
//
//   slice t / L:  positions max(0, t / L * L - extension) .. t;  below `start` from cached blocks,
//                 then fresh rows
//
// A decode step commits its keys first and has no fresh rows, as in PlanPaged; a chunk of prefill
// starts at a multiple of kBlockSlots. What a finished slice sees of earlier ones is PlanPaged
// over slices, with neither window nor pages.
//
// Sources: zero tokens left of the first slice (with `zero_boundary`, extension > 0; rows as in
// PlanSlices), cached blocks (Layout::kPaged), fresh rows (if fresh). Table 0 as in PlanSlices.
#pragma once

#include <span>

#include "kernels/span/paged_planner.h"
#include "kernels/span/plan.h"
#include "kernels/span/slice_planner.h"

namespace longview::kernels {

// `pattern` must be autoregressive.
Plan PlanPagedSlices(const SlicePattern& pattern, bool fresh, std::span<const PagedSequence> batch);

}  // namespace longview::kernels
