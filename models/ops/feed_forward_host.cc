#include <algorithm>
#include <cstring>

#include "models/dense/row_linear.h"
#include "models/ops/feed_forward.h"
#include "models/ops/host_backend.h"
#include "models/ops/residual.h"

namespace longview::models::ops {
namespace {

// Scratch of a block of few rows.
struct FewRows {
  std::byte* products = nullptr;  // Results of any of its linears.
  std::byte* expanded = nullptr;  // T [rows, expanded]
};

FewRows CarveFewRows(const BlockWeights& weights, int64_t rows, Compute compute, Carver& carver) {
  size_t products = 0;
  for (const Weight* weight : {weights.out, weights.expand, weights.contract}) {
    if (weight == nullptr) continue;
    products = std::max(products, RowLinear::ScratchBytes(weight->out, weight->in, compute));
  }
  const int64_t expanded = rows * weights.expand->out * ElementBytes(compute);
  FewRows few;
  few.products = carver.TakeBytes(products);
  few.expanded = carver.TakeBytes(static_cast<size_t>(expanded));
  return few;
}

void FeedFewRows(const HostBackend& host, const BlockWeights& weights, const BlockRows& rows,
                 const FewRows& few) {
  const RowKernels& kernels = host.kernels();
  const auto each = [&](const Weight& weight, const std::byte* input, auto&& use) {
    ForEachFewRow(*weight.host, input, rows.x.count, few.products, host.pool(), host.times(), use);
  };
  const int64_t width = rows.x.width;
  const bool post = weights.norms == NormPlace::kPost;
  const auto add_row = post ? kernels.residual_norm : kernels.residual_prenorm;
  const auto add = [&](const Weight& weight, const NormWeight* norm) {
    const float* bias = weight.host->bias.data();
    return [&rows, &kernels, norm, bias, width, add_row, post](int64_t row, std::byte* y) {
      float* x = rows.x.floats() + row * width;
      if (norm == nullptr) {
        kernels.residual_add(x, y, bias, width, post ? rows.input.Row(row) : nullptr);
      } else {
        add_row(x, y, bias, norm->host.view(), width, rows.input.Row(row));
      }
    };
  };
  each(*weights.out, rows.z.data, add(*weights.out, weights.after_attention));
  const int64_t inner = weights.expand->out, inner_bytes = inner * ElementBytes(host.compute());
  const float* inner_bias = weights.expand->host->bias.data();
  each(*weights.expand, rows.input.data, [&](int64_t row, std::byte* y) {
    kernels.bias_act(y, inner_bias, inner, weights.activation);
    std::memcpy(few.expanded + row * inner_bytes, y, static_cast<size_t>(inner_bytes));
  });
  each(*weights.contract, few.expanded, add(*weights.contract, weights.after_layer));
}

}  // namespace

OpWork FeedForward::Work() const {
  OpWork work;
  if (!rows.z.few) {
    const auto columns = [](const Weight& weight) { return weight.out + ScratchColumns(weight); };
    const int64_t gates = weights.gate != nullptr ? columns(*weights.gate) : 0;
    work.panel_columns = weights.expand->out + std::max({gates, columns(*weights.contract),
                                                         ScratchColumns(*weights.expand)});
  }
  for (const Weight* weight : {weights.out, weights.expand, weights.gate, weights.contract}) {
    if (weight == nullptr) continue;
    const double elements = static_cast<double>(rows.x.count) * static_cast<double>(weight->out);
    work.linear += elements * static_cast<double>(weight->in);
    work.rows += elements;
  }
  return work;
}

void FeedForward::OnHost(HostBackend& host) const {
  if (rows.z.few) {
    Carver scratch = host.Scratch();
    const FewRows few = CarveFewRows(weights, rows.x.count, host.compute(), scratch);
    if (host.Runs(scratch)) FeedFewRows(host, weights, rows, few);
    return;
  }
  if (!host.Runs()) return;
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
               host.pool(), host.times());
  if (weights.last != nullptr) host.Run(Residual{rows.x, {}, weights.last, NormPlace::kPost, {}});
}

}  // namespace longview::models::ops
