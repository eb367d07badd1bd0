#include "models/longformer/attend_folded.h"

namespace longview::models::ops {

// Per global row: its query, then a score and a weighted sum per head and token, each as wide as
// the residual stream.
OpWork AttendFolded::Work() const {
  OpWork work;
  const auto columns = static_cast<double>(width());
  for (const FoldGroup& group : folds.groups) {
    const auto count = static_cast<double>(group.count);
    work.linear += count * columns * columns;
    work.attention += 2 * count * heads * static_cast<double>(group.tokens) * columns;
  }
  return work;
}

}  // namespace longview::models::ops
