#include "models/ops/host_ops.h"

#include <cstring>

#include "models/parallel.h"

namespace longview::models {
namespace {

constexpr int64_t kEmbedRows = 3;  // Rows of tables that a thread has at a time.

}  // namespace

HostOps::HostOps(const ComputeContext& context, const OpsNeed& need, std::byte* memory,
                 EncoderTimes* times)
    : Ops({context.compute, context.tile_rows(), kPanelRows, /*zeroes_tails=*/true,
           context.block_type()},
          Carver(memory)),
      context_(context),
      kernels_(ChooseRowKernels(context.compute)),
      floats_(ChooseRowKernels(Compute::kFp32)),
      scratch_(memory + need.buffers),
      times_(times) {}

const float* HostOps::Zeros(int64_t width) {
  if (static_cast<int64_t>(zeros_.size()) < width) zeros_.resize(static_cast<size_t>(width));
  return zeros_.data();
}

void HostOps::Embed(const EmbedArgs& args) {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  const VectorKernels& vectors = ChooseVectorKernels();
  const float* zeros = Zeros(args.x.width);
  const int64_t width = args.x.width;
  const auto bytes = static_cast<size_t>(width) * sizeof(float);
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* scratch = reinterpret_cast<float*>(scratch_) + kEmbedRows * width * thread;
    const auto read = [&](const Table* table, IndexRef rows, int64_t row, int to) -> const float* {
      if (table == nullptr) return zeros;
      table->CopyRow(rows.data[row], scratch + to * width);
      return scratch + to * width;
    };
    const int64_t begin = args.x.count * thread / threads;
    const int64_t end = args.x.count * (thread + 1) / threads;
    for (int64_t row = begin; row < end; ++row) {
      const float* word = read(args.words, args.ids, row, 0);
      const float* position = read(args.positions, args.places, row, 1);
      const float* type = read(args.types, args.kinds, row, 2);
      float* x = args.x.floats() + row * width;
      void* copy = args.input && args.input.data != args.x.data ? args.input.Row(row) : nullptr;
      if (args.norm != nullptr && args.factor == 1) {
        kernels_.sum_norm(x, word, position, type, args.norm->host.view(), width, copy);
      } else {
        std::memcpy(x, args.rounds_words ? zeros : position, bytes);
        vectors.add_scaled(x, word, args.factor, width);
        if (args.rounds_words) vectors.add_scaled(x, position, 1, width);
        if (args.types != nullptr) vectors.add_scaled(x, type, 1, width);
        if (args.norm != nullptr) {
          kernels_.residual_norm(x, nullptr, zeros, args.norm->host.view(), width, copy);
        }
      }
      // A norm's copy is of 16-bit types alone.
      const bool copied = args.norm != nullptr && compute() != Compute::kFp32;
      if (copy != nullptr && !copied) kernels_.narrow(x, width, copy);
    }
  });
}

void HostOps::Gather(const Rows& from, IndexRef rows, const Rows& to) {
  const auto bytes = static_cast<size_t>(to.row_bytes());
  Each(rows.count, [&](long i) {
    if (rows.data[i] >= 0) std::memcpy(to.Row(i), from.Row(rows.data[i]), bytes);
  });
}

void HostOps::Gather(const Table& from, IndexRef rows, const Rows& to) {
  Each(rows.count, [&](long i) { from.CopyRow(rows.data[i], to.floats() + i * to.width); });
}

void HostOps::Keep(const Rows& x, IndexRef rows, const Rows&) {
  for (int64_t i = 0; i < rows.count; ++i) MoveRows(x, rows.data[i], i, 1);
}

void HostOps::Narrow(const Rows& x, const Rows& out) {
  Each(x.count, [&](long i) { kernels_.narrow(x.floats() + i * x.width, x.width, out.Row(i)); });
}

void HostOps::Residual(const Rows& x, const Rows& y, const NormWeight* norm, NormPlace place,
                       const Rows& out) {
  const float* zeros = Zeros(x.width);
  // A norm that nothing reads in T is of fp32, whatever the model computes in.
  const RowKernels& kernels = y || out ? kernels_ : floats_;
  const bool pre = place == NormPlace::kPre && norm != nullptr;
  Each(x.count, [&](long i) {
    float* row = x.floats() + i * x.width;
    const void* added = y ? y.Row(i) : nullptr;
    void* to = out ? out.Row(i) : nullptr;
    if (pre) {
      kernels.residual_prenorm(row, added, zeros, norm->host.view(), x.width, to);
    } else if (norm != nullptr) {
      kernels.residual_norm(row, added, zeros, norm->host.view(), x.width, to);
    } else {
      kernels.residual_add(row, added, zeros, x.width, to);
    }
  });
}

void HostOps::Project(const Weight& weight, const Rows& in, const Rows& out) {
  const float* bias = weight.host->bias.data();
  const bool widens = out.element != ElementBytes(compute());
  Multiply(weight, in, [&](int64_t row, std::byte* y) {
    if (widens) {
      kernels_.bias_widen(y, bias, weight.out, out.floats() + row * out.stride);
    } else {
      kernels_.bias_copy(y, bias, weight.out, out.Row(row));
    }
  });
}

void HostOps::ProjectRotated(const Weight& weight, const Rotary& rotary, const Rows& in,
                             const Rows& out) {
  const DenseLayer& layer = *weight.host;
  const int64_t dim = rotary.angles->width(), half = dim / 2;
  const int64_t rotated = rotary.columns * out.element;
  ForEachRow(layer, in.data, in.count, layer.linear.sizes(), *context_.pool, times_,
             [&](int64_t row, std::byte* y) {
               const float* cosines = rotary.angles->values(rotary.places.data[row]);
               const float* bias = layer.bias.data();
               kernels_.bias_rotate(y, bias, cosines, cosines + half, rotary.columns / dim, half,
                                    out.Row(row));
               kernels_.bias_copy(y + rotated, bias + rotary.columns, weight.out - rotary.columns,
                                  out.Row(row) + rotated);
             });
}

void HostOps::Attend(PlanRef plan, const kernels::Call& call) {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  RunSpans(context_, *plan.plan, call, scratch_);
}

void HostOps::FeedForward(const BlockWeights& weights, const BlockRows& rows) {
  if (rows.z.few) return FeedFewRows(weights, rows);
  const auto layer = [](const Weight* weight) { return weight ? &*weight->host : nullptr; };
  const auto norm = [](const NormWeight* given) { return given ? &given->host : nullptr; };
  BlockTail tail;
  tail.out = layer(weights.out);
  tail.after_attention = norm(weights.after_attention);
  tail.expand = layer(weights.expand);
  tail.gate = layer(weights.gate);
  tail.contract = layer(weights.contract);
  tail.after_layer = norm(weights.after_layer);
  tail.activation = weights.activation;
  tail.norms = weights.norms;
  RunBlockTail(tail, {rows.x.floats(), rows.input.data, rows.z.data, rows.x.count}, SizesOf(tail),
               *context_.pool, times_);
  if (weights.last != nullptr) Residual(rows.x, {}, weights.last, NormPlace::kPost, {});
}

HostCount::HostCount(const ComputeContext& context)
    : CountOps({context.compute, context.tile_rows(), kPanelRows, /*zeroes_tails=*/true,
                context.block_type()}),
      context_(context) {}

size_t HostCount::EmbedScratch(const EmbedArgs& args) const {
  return static_cast<size_t>(kEmbedRows * args.x.width * context_.pool->threads()) * sizeof(float);
}

size_t HostCount::AttendScratch(const kernels::Plan& plan, const kernels::Call& call) const {
  if (plan.items.empty()) return 0;
  return Measure(plan, call, context_.isa).total(context_.pool->threads());
}

size_t HostCount::PanelBytes(int64_t columns) const {
  return static_cast<size_t>(kPanelRows * columns * ElementBytes(context_.compute));
}

}  // namespace longview::models
