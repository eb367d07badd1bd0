#include "kernels/span/cross_planner.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {

Plan PlanCross(int32_t heads, int32_t tile_rows, std::span<const CrossDocument> batch) {
  PlanBuilder builder;
  const int source = builder.AddSource(0, heads);
  for (size_t s = 0; s < batch.size(); ++s) {
    const CrossDocument& document = batch[s];
    KERNEL_CHECK(document.keys >= 1);
    for (int32_t at = 0; at < document.queries; at += tile_rows) {
      TileRowsOf rows;
      rows.row0 = document.query_row0 + at;
      rows.rows = std::min(tile_rows, document.queries - at);
      rows.seq = static_cast<int32_t>(s);
      rows.heads = heads;
      builder.BeginTile(rows);
      builder.AddAllKeys(source, 0, 0, document.keys, nullptr, Split::kSplit);
      builder.EndTile();
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
