#include "models/ops/backend.h"

#include <cstring>

#include "models/ops/device_backend.h"
#include "models/ops/host_backend.h"

namespace longview::models {

PlanRef Backend::Stage(const kernels::Plan& plan) {
  return {&plan, device_ == nullptr ? -1 : device_->StagePlan(plan)};
}

int64_t Backend::TailRows(Tail tail) const {
  // The host, which zeroes tails, writes none.
  const bool reached = tail == Tail::kPanel || (tail == Tail::kWritten && !facts_.zeroes_tails);
  return reached ? facts_.panel_tail : 0;
}

Rows Backend::Take(int64_t count, int64_t width, RowType type, Tail tail) {
  const int64_t behind = TailRows(tail);
  const Rows rows = CarveRows(count + behind, width, type, Tail::kNone, carver_).First(count);
  if (behind > 0) ClearTail(rows);
  return rows;
}

Rows Backend::CarveRows(int64_t count, int64_t width, RowType type, Tail tail,
                        Carver& carver) const {
  Rows rows;
  rows.count = count;
  rows.width = rows.stride = width;
  rows.element =
      type == RowType::kFloat ? static_cast<int64_t>(sizeof(float)) : ElementBytes(compute());
  const int64_t all = count == 0 ? 0 : count + TailRows(tail);
  rows.data = carver.TakeBytes(static_cast<size_t>(all * rows.row_bytes()));
  return rows;
}

// Rows behind the end are multiplied, and their results are never read.
void Backend::ClearTail(const Rows& rows) const {
  if (rows.data == nullptr || !facts_.zeroes_tails) return;
  std::memset(rows.Row(rows.count), 0, static_cast<size_t>(facts_.panel_tail * rows.row_bytes()));
}

Rows Backend::TakeInput(const Rows& x, NormPlace norms) {
  if (compute() == Compute::kFp32 && norms == NormPlace::kPost) return x;
  return Take(x.count, x.width, RowType::kCompute, Tail::kPanel);
}

Rows Backend::TakeKept(const Rows& x, int64_t count, const Rows& spare) {
  if (!on_device()) return x.First(count);
  if (spare) return spare.First(count);
  const bool floats = x.element == sizeof(float);
  return Take(count, x.width, floats ? RowType::kFloat : RowType::kCompute, Tail::kPanel);
}

Rows Backend::TakeResults(int64_t floats) {
  if (on_device()) return Take(1, floats, RowType::kFloat);
  std::byte* const memory = counts() ? nullptr : host_->TakeResults(floats);
  return {memory, 1, floats, floats, sizeof(float)};
}

ForwardNeed Backend::need() const {
  ForwardNeed need = need_;
  need.buffers = carver_.used();
  if (lists_ != nullptr) {
    need.lists += lists_->used();
    need.most_lists += lists_->used();
  }
  return need;
}

void Backend::AddWork(const OpWork& work) {
  work_ += {work.linear, work.attention, work.rows};
  if (work.panel_columns == 0) return;
  need_.panels = true;
  // A device's results are in scratch.
  if (on_device()) return;
  const int64_t bytes = facts_.panel_tail * work.panel_columns * ElementBytes(compute());
  need_.transient = std::max(need_.transient, static_cast<size_t>(bytes));
}

}  // namespace longview::models
