#include "kernels/span/tile_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "kernels/base/bfloat16.h"

namespace longview::kernels {
namespace {

double Element(const void* data, DType dtype, int64_t index) {
  if (dtype == DType::kFloat32) return static_cast<const float*>(data)[index];
  return BFloat16ToFloat(static_cast<const uint16_t*>(data)[index]);
}

// Reads single keys and values of one source, wherever they lie.
class KeyReader {
 public:
  KeyReader(const TileJob& job, int source_index, int seq, int kv_head)
      : plan_(*job.plan),
        map_(job.plan->sources[source_index]),
        source_(job.call->sources[source_index]),
        panels_(job.sources[source_index]),
        layout_(source_.dtype, job.call->Dk, job.call->Dv,
                source_.layout == Layout::kRows ? 1 : source_.kv_heads),
        seq_(seq),
        kv_head_(kv_head) {}

  bool IsHole(int32_t slot) const {
    return (plan_.valid[map_.valid0 + slot / 64] >> (slot % 64) & 1) == 0;
  }

  // Copies the key and the value in `slot`.
  void Read(int32_t slot, double* k, double* v) const {
    if (source_.layout != Layout::kRows) {
      const std::byte* k_block = panels_.K(seq_, slot / kBlockSlots, kv_head_);
      const std::byte* v_block = panels_.V(seq_, slot / kBlockSlots, kv_head_);
      for (int d = 0; d < layout_.Dk(); ++d) k[d] = layout_.ReadK(k_block, slot % kBlockSlots, d);
      for (int d = 0; d < layout_.Dv(); ++d) v[d] = layout_.ReadV(v_block, slot % kBlockSlots, d);
      return;
    }
    const int64_t row = SlotRow(plan_, map_, slot);
    KERNEL_CHECK(row >= 0);
    const int64_t k0 = row * source_.k_row_stride + kv_head_ * source_.k_head_stride;
    const int64_t v0 = row * source_.v_row_stride + kv_head_ * source_.v_head_stride;
    for (int d = 0; d < layout_.Dk(); ++d) k[d] = Element(source_.k, source_.dtype, k0 + d);
    for (int d = 0; d < layout_.Dv(); ++d) v[d] = Element(source_.v, source_.dtype, v0 + d);
  }

 private:
  const Plan& plan_;
  const SlotMap& map_;
  const Source& source_;
  const PanelSource& panels_;
  KvLayout layout_;
  int seq_;
  int kv_head_;
};

// The running softmax of one query row.
struct RowState {
  double m = -std::numeric_limits<double>::infinity();
  double l = 0.0;
  std::array<double, kMaxHeadDim> o{};

  void Add(double score, const double* v, int Dv) {
    if (score > m) {
      const double keep = std::exp2(m - score);
      l *= keep;
      for (int d = 0; d < Dv; ++d) o[d] *= keep;
      m = score;
    }
    const double weight = std::exp2(score - m);
    l += weight;
    for (int d = 0; d < Dv; ++d) o[d] += weight * v[d];
  }
};

// The bias of one key in natural units.
double BiasScore(const Call& call, const Bias& bias, int head, const double* q, int row, int key) {
  const Table& table = call.tables[bias.id];
  const int64_t entry = bias.base +
                        int64_t{bias.row_mul} * ((row + bias.row_phase) / bias.row_div) +
                        int64_t{bias.key_mul} * key;
  KERNEL_CHECK(entry >= 0 && entry < table.entries);
  const int64_t base = head * table.head_stride + entry * table.entry_stride;
  if (bias.kind == kAdded) return Element(table.data, table.dtype, base);
  double dot = 0.0;
  for (int d = 0; d < call.Dk; ++d) {
    const double add = table.dot_add == nullptr ? 0.0 : table.dot_add[head * call.Dk + d];
    dot += (q[d] + add) * Element(table.data, table.dtype, base + d);
  }
  return call.scale * dot;
}

void AddSpan(const TileJob& job, const Tile& tile, const Span& span, int head, int row,
             const double* q, RowState* state) {
  const Plan& plan = *job.plan;
  const Call& call = *job.call;
  Interval seen{0, span.keys};
  if (span.interval >= 0) seen = plan.intervals[span.interval + row];
  const float* q_add = call.sources[span.source].q_add;
  const KeyReader reader(job, span.source, tile.seq, head / call.kv_group);
  std::array<double, kMaxHeadDim> k;
  std::array<double, kMaxHeadDim> v;
  for (int j = std::max(seen.lo, 0); j < std::min(seen.hi, span.keys); ++j) {
    const int32_t slot = span.key0 + j * span.key_step;
    if (span.holes != 0 && reader.IsHole(slot)) continue;
    reader.Read(slot, k.data(), v.data());
    double dot = 0.0;
    for (int d = 0; d < call.Dk; ++d) {
      const double add = q_add == nullptr ? 0.0 : q_add[head * call.Dk + d];
      dot += (q[d] + add) * k[d];
    }
    double score = call.scale * dot;
    if (span.bias >= 0) score += BiasScore(call, plan.biases[span.bias], head, q, row, j);
    state->Add(score * std::numbers::log2e, v.data(), call.Dv);
  }
}

// Finishes as FinishState does, so that a row cut into one piece or several has equal bits.
void StoreOutput(const Call& call, int64_t row, int head, const RowState& state) {
  std::array<float, kMaxHeadDim> o;
  for (int d = 0; d < call.Dv; ++d) o[d] = static_cast<float>(state.o[d]);
  FinishState(static_cast<float>(state.l), o.data(), call.Dv);
  const int64_t base = row * call.out_row_stride + head * call.out_head_stride;
  for (int d = 0; d < call.Dv; ++d) {
    if (call.dtype == DType::kFloat32) {
      static_cast<float*>(call.out)[base + d] = o[d];
    } else {
      static_cast<uint16_t*>(call.out)[base + d] = FloatToBFloat16(o[d]);
    }
  }
}

void StorePartial(const PartialStates& partials, int64_t slot, int Dv, const RowState& state) {
  partials.m[slot] = static_cast<float>(state.m);
  partials.l[slot] = static_cast<float>(state.l);
  for (int d = 0; d < Dv; ++d) {
    partials.o[slot * partials.o_stride + d] = static_cast<float>(state.o[d]);
  }
}

void RunTile(const TileJob& job, const Item& item, std::byte* /*scratch*/) {
  const Plan& plan = *job.plan;
  const Call& call = *job.call;
  const Tile& tile = plan.tiles[item.tile];
  for (int i = 0; i < tile.rows; ++i) {
    const int64_t row = tile.row0 + static_cast<int64_t>(i) * tile.row_step;
    std::array<double, kMaxHeadDim> q{};
    if (tile.spans > 0) {
      const int64_t base = row * call.q_row_stride + item.head * call.q_head_stride;
      for (int d = 0; d < call.Dk; ++d) q[d] = Element(call.q, call.dtype, base + d);
    }
    RowState state;
    for (int s = 0; s < tile.spans; ++s) {
      AddSpan(job, tile, plan.spans[tile.span0 + s], item.head, i, q.data(), &state);
    }
    if (tile.part < 0) {
      StoreOutput(call, row, item.head, state);
    } else {
      const int64_t slot = tile.part + int64_t{item.head - tile.head0} * tile.rows + i;
      StorePartial(job.partials, slot, call.Dv, state);
    }
  }
}

}  // namespace

const TileKernel kReferenceTileKernel = {
    .isa = Isa::kScalar,
    .panels = DType::kFloat32,
    .scratch_bytes = [](const Plan&, const Call&) -> size_t { return 0; },
    .run = RunTile,
};

}  // namespace longview::kernels
