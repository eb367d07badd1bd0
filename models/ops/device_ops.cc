#include "models/ops/device_ops.h"

#include "kernels/cuda/span/launch_shape.h"
#include "models/device/device_tail.h"
#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

constexpr int64_t kTail = kDevicePanelTail;

const DeviceNorm* DeviceOf(const NormWeight* norm) { return norm ? &norm->device : nullptr; }
const DeviceLinear* DeviceOf(const Weight* weight) { return weight ? &weight->device : nullptr; }

// Bytes of a linear's results in T, with room for the last panel.
size_t PanelsBytes(const Weight& weight, int64_t rows, Compute compute) {
  return static_cast<size_t>((rows + kTail) * weight.out * ElementBytes(compute));
}

// The same call for a device, tensors and all.
kernels::cuda::SpanCall SpanCallOf(const kernels::Call& call) {
  kernels::cuda::SpanCall span = {};
  span.q = call.q;
  span.out = call.out;
  span.q_row_stride = call.q_row_stride;
  span.q_head_stride = call.q_head_stride;
  span.out_row_stride = call.out_row_stride;
  span.out_head_stride = call.out_head_stride;
  span.element = call.dtype;
  span.Dk = call.Dk;
  span.Dv = call.Dv;
  span.H = call.H;
  span.kv_group = call.kv_group;
  span.scale = call.scale;
  span.sources_used = static_cast<int32_t>(call.sources.size());
  for (size_t i = 0; i < call.sources.size(); ++i) {
    const kernels::Source& from = call.sources[i];
    kernels::cuda::SpanSource& to = span.sources[i];
    to.k = from.k;
    to.v = from.v;
    to.k_row_stride = from.k_row_stride;
    to.k_head_stride = from.k_head_stride;
    to.v_row_stride = from.v_row_stride;
    to.v_head_stride = from.v_head_stride;
    to.block_table = from.block_table;
    to.seq_offset = from.seq_offset;
    to.q_add = from.q_add;
    to.layout = from.layout;
    to.kv_heads = from.kv_heads;
  }
  for (size_t i = 0; i < call.tables.size(); ++i) {
    const kernels::Table& from = call.tables[i];
    kernels::cuda::SpanTable& to = span.tables[i];
    to.data = from.data;
    to.dot_add = from.dot_add;
    to.head_stride = from.head_stride;
    to.entry_stride = from.entry_stride;
    to.element = from.dtype;
    to.entries = from.entries;
  }
  return span;
}

}  // namespace

Rows TakeKeptOnDevice(Ops& ops, const Rows& x, int64_t count, const Rows& spare) {
  if (spare) return spare.First(count);
  const bool floats = x.element == sizeof(float);
  return ops.Take(count, x.width, floats ? RowType::kFloat : RowType::kCompute, Ops::Tail::kPanel);
}

DeviceOps::DeviceOps(const Device& device, Compute compute)
    : Ops({compute, kernels::cuda::kDeviceTileRows, kTail, /*zeroes_tails=*/false},
          Carver(nullptr)),
      device_(device) {}

void DeviceOps::UseMemory(Carver& memory, const OpsNeed& need) {
  carver() = Carver(memory.TakeBytes(need.buffers));
  scratch_ = memory.TakeBytes(need.scratch);
}

PlanRef DeviceOps::Stage(const kernels::Plan& plan) {
  const kernels::cuda::PlanCapacity& c =
      plans_.emplace_back(StagePlan(plan, *lists_, rounds_)).capacity;
  for (const int32_t number : {c.tiles, c.spans, c.intervals, c.biases, c.items, c.merges,
                               c.sources, c.slot_rows, c.valid_words, c.partial_slots}) {
    lists_->Note(number);
  }
  return {&plan, static_cast<int>(plans_.size()) - 1};
}

IndexRef DeviceOps::Stage(std::span<const int32_t> values) {
  return {lists_->Add(values), static_cast<int64_t>(values.size())};
}

void DeviceOps::Embed(const EmbedArgs& args) {
  Timed(&EncoderTimes::rest, [&] {
    const auto table = [](const Table* given) { return given ? given->device() : nullptr; };
    const kernels::cuda::EmbedSums sums = {
        args.words->device(), table(args.positions),
        table(args.types),    args.ids.data,
        args.places.data,     args.kinds.data,
        args.factor,          args.x.floats(),
        args.x.count,         static_cast<int32_t>(args.x.width)};
    device_.Check(device_.api().encoder.embed(device_.stream(), sums), "embeddings");
    if (args.norm != nullptr || args.input) {
      Residual(args.x, {}, args.norm, NormPlace::kPost, args.input);
    }
  });
}

void DeviceOps::Copy(const void* from, int64_t from_bytes, IndexRef rows, const Rows& to) const {
  Timed(&EncoderTimes::rest, [&] {
    const kernels::cuda::CopyRows args = {from,       to.data,
                                          rows.data,  nullptr,
                                          rows.count, static_cast<int32_t>(to.row_bytes()),
                                          from_bytes, to.stride * to.element};
    device_.Check(device_.api().rows.copy(device_.stream(), args), "copying rows");
  });
}

void DeviceOps::Gather(const Rows& from, IndexRef rows, const Rows& to) {
  Copy(from.data, from.stride * from.element, rows, to);
}

void DeviceOps::Gather(const Table& from, IndexRef rows, const Rows& to) {
  Copy(from.device(), from.width() * int64_t{sizeof(float)}, rows, to);
}

void DeviceOps::Narrow(const Rows& x, const Rows& out) {
  Residual(x, {}, nullptr, NormPlace::kPost, out);
}

void DeviceOps::Residual(const Rows& x, const Rows& y, const NormWeight* norm, NormPlace place,
                         const Rows& out) {
  Timed(&EncoderTimes::rest, [&] {
    const DeviceRows rows = RowsOf(x.width);
    if (place == NormPlace::kPre && norm != nullptr) {
      return rows.AddPrenorm(x.floats(), y.data, nullptr, norm->device, x.count, out.data);
    }
    std::byte* copy = out.data == x.data ? nullptr : out.data;
    rows.Add(x.floats(), y.data, nullptr, DeviceOf(norm), x.count, copy);
  });
}

void DeviceOps::Project(const Weight& weight, const Rows& in, const Rows& out) {
  Timed(&EncoderTimes::linears, [&] {
    if (out.element == ElementBytes(compute())) {
      Multiply(weight, in, out.data);
      return AddBias(device_, weight.device, out.data, in.count, Activation::kNone);
    }
    Multiply(weight, in, scratch_);
    Widen(weight, scratch_, out);
  });
}

void DeviceOps::ProjectRotated(const Weight& weight, const Rotary& rotary, const Rows& in,
                               const Rows& out) {
  Timed(&EncoderTimes::linears, [&] {
    const DeviceRotary angles = {rotary.angles->device(), rotary.places.data,
                                 rotary.angles->width(), rotary.columns};
    ApplyRotated(device_, weight.device, angles, in.data, in.count, out.data);
  });
}

void DeviceOps::Attend(PlanRef plan, const kernels::Call& call) {
  Timed(&EncoderTimes::attention, [&] {
    using kernels::cuda::SpanPhase;
    models::Attend(device_, plans_[static_cast<size_t>(plan.staged)], SpanCallOf(call), scratch_,
                   plan.decodes ? SpanPhase::kDecode : SpanPhase::kPrefill);
  });
}

void DeviceOps::FeedForward(const BlockWeights& weights, const BlockRows& rows) {
  Timed(&EncoderTimes::linears, [&] {
    DeviceTail tail;
    tail.out = DeviceOf(weights.out);
    tail.after_attention = DeviceOf(weights.after_attention);
    tail.expand = DeviceOf(weights.expand);
    tail.gate = DeviceOf(weights.gate);
    tail.contract = DeviceOf(weights.contract);
    tail.after_layer = DeviceOf(weights.after_layer);
    tail.last = DeviceOf(weights.last);
    tail.activation = weights.activation;
    tail.norms = weights.norms;
    Carver scratch(scratch_);
    const auto take = [&](const Weight* weight) -> std::byte* {
      if (weight == nullptr) return nullptr;
      return scratch.TakeBytes(PanelsBytes(*weight, rows.x.count, compute()));
    };
    DeviceTailRows part = {rows.x.floats(), rows.input.data, rows.z.data};
    part.wide = take(weights.expand);
    part.gates = take(weights.gate);
    part.added = take(weights.contract);
    part.rows = rows.x.count;
    part.few = rows.z.few;
    RunDeviceTail(device_, tail, part);
  });
}

DeviceCount::DeviceCount(Compute compute, bool rounds)
    : CountOps({compute, kernels::cuda::kDeviceTileRows, kTail, /*zeroes_tails=*/false}),
      rounds_(rounds) {}

size_t DeviceCount::PlanBytes(const kernels::Plan& plan) const {
  return kernels::AlignUp(kernels::cuda::ImageBytes(StagedCapacity(plan, rounds_)));
}

size_t DeviceCount::AttendScratch(const kernels::Plan& plan, const kernels::Call& call) const {
  DevicePlan staged;
  staged.capacity = StagedCapacity(plan, rounds_);
  return kernels::AlignUp(DevicePartialBytes(staged, call.Dv));
}

size_t DeviceCount::ProjectScratch(const Weight& weight, const Rows& in, const Rows& out) const {
  if (out.element == ElementBytes(compute())) return 0;
  return kernels::AlignUp(
      static_cast<size_t>((in.count + kTail) * weight.out * ElementBytes(compute())));
}

size_t DeviceCount::FeedForwardScratch(const BlockWeights& weights, const BlockRows& rows) const {
  Carver scratch(nullptr);
  for (const Weight* weight : {weights.expand, weights.gate, weights.contract}) {
    if (weight != nullptr) scratch.TakeBytes(PanelsBytes(*weight, rows.x.count, compute()));
  }
  return scratch.used();
}

}  // namespace longview::models
