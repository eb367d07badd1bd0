#include "models/ops/ops.h"

#include <cmath>

#include "kernels/base/workspace.h"
#include "models/layers/span_rows.h"

namespace longview::models {

Rows Ops::Take(int64_t count, int64_t width, RowType type, Tail tail) {
  Rows rows;
  rows.count = count;
  rows.width = rows.stride = width;
  rows.element =
      type == RowType::kFloat ? static_cast<int64_t>(sizeof(float)) : ElementBytes(compute());
  // The host, which zeroes tails, writes none.
  const bool reached = tail == Tail::kPanel || (tail == Tail::kWritten && !shape_.zeroes_tails);
  const int64_t behind = reached ? shape_.panel_tail : 0;
  rows.data = carver_.TakeBytes(static_cast<size_t>((count + behind) * rows.row_bytes()));
  // Rows behind the end are multiplied, and their results are never read.
  if (rows.data != nullptr && shape_.zeroes_tails) {
    std::memset(rows.Row(count), 0, static_cast<size_t>(behind * rows.row_bytes()));
  }
  return rows;
}

Rows Ops::TakeInput(const Rows& x, NormPlace norms) {
  if (compute() == Compute::kFp32 && norms == NormPlace::kPost) return x;
  return Take(x.count, x.width, RowType::kCompute, Tail::kPanel);
}

kernels::Source Ops::CachedSource(const StripRef& strip, const BlocksRef& blocks) const {
  if (strip.cache != nullptr) {
    return strip.cache->PagedSource(strip.strip, strip.layer, blocks.blocks, blocks.offsets);
  }
  kernels::Source source;
  source.dtype = shape_.blocks;
  source.layout = kernels::Layout::kPaged;
  source.kv_heads = strip.heads;
  return source;
}

float OuterScale(const OuterArgs& args) {
  return 1.0f / std::sqrt(static_cast<float>(args.q.width / args.heads));
}

size_t OpenSegmentArgs::StateBytes() const {
  const int widths[] = {dim(), dim()};
  return kernels::AlignUp(kernels::PoolStateBytes(state_columns(), widths));
}

kernels::Call HeadsCall(Compute compute, const Rows& q, const Rows& out, int heads) {
  kernels::Call call;
  call.dtype = SpanType(compute);
  call.q = q.data;
  call.out = out.data;
  call.q_row_stride = q.stride;
  call.out_row_stride = out.stride;
  call.Dk = static_cast<int>(q.width / heads);
  call.Dv = static_cast<int>(out.width / heads);
  call.q_head_stride = call.Dk;
  call.out_head_stride = call.Dv;
  call.H = heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(call.Dk));
  return call;
}

kernels::Source HeadsSource(Compute compute, const Rows& keys, const Rows& values, int heads) {
  kernels::Source source;
  source.k = keys.data;
  source.v = values.data;
  source.dtype = SpanType(compute);
  source.k_row_stride = keys.stride;
  source.v_row_stride = values.stride;
  source.k_head_stride = keys.width / heads;
  source.v_head_stride = values.width / heads;
  return source;
}

}  // namespace longview::models
