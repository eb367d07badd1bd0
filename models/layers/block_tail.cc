#include "models/layers/block_tail.h"

#include <algorithm>

#include "models/parallel.h"

namespace longview::models {

PanelSizes SizesOf(const BlockTail& tail) {
  PanelSizes sizes = {.small = true, .medium = true, .any = true};
  for (const DenseLayer* dense : {tail.out, tail.expand, tail.gate, tail.contract}) {
    if (dense != nullptr) NarrowSizes(*dense, sizes);
  }
  return sizes;
}

void RunBlockTail(const BlockTail& tail, const TailRows& rows, PanelSizes sizes,
                  const kernels::ParallelFor& pool, RunTimes* times) {
  const Compute compute = tail.expand->linear.compute();
  const RowKernels& kernels = ChooseRowKernels(compute);
  const auto add =
      tail.norms == NormPlace::kPost ? kernels.residual_norm : kernels.residual_prenorm;
  const int64_t width = tail.contract->out();
  // Without `out` z itself is added, with a bias of zeros.
  const std::vector<float> no_bias(tail.out == nullptr ? width : 0);
  const int64_t row_bytes = width * ElementBytes(compute);
  const int64_t expanded_bytes = tail.expand->out() * ElementBytes(compute);
  const auto each = [&](int64_t used, auto&& body) {
    const Stopwatch watch(times ? &times->rest : nullptr);
    ParallelRanges(pool, used, 8, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) body(i);
    });
  };
  for (int64_t row = 0; row < rows.rows;) {
    const int panel = NextPanel(sizes, rows.rows - row);
    const int64_t used = std::min<int64_t>(panel, rows.rows - row);
    const auto multiply = [&](const DenseLayer& dense, const void* input) {
      const Stopwatch watch(times ? &times->linears : nullptr);
      return dense.linear.Panel(input, panel, used);
    };
    const auto residual = [&](const void* y, const float* bias, const Norm* norm) {
      each(used, [&](long i) {
        float* x = rows.x + (row + i) * width;
        const std::byte* added = static_cast<const std::byte*>(y) + i * row_bytes;
        std::byte* input = rows.input + (row + i) * row_bytes;
        if (norm == nullptr) {
          const bool copies = tail.norms == NormPlace::kPost;
          kernels.residual_add(x, added, bias, width, copies ? input : nullptr);
        } else {
          add(x, added, bias, norm->view(), width, input);
        }
      });
    };
    if (tail.out == nullptr) {
      residual(rows.z + row * row_bytes, no_bias.data(), tail.after_attention);
    } else {
      const PanelOutput y = multiply(*tail.out, rows.z + row * row_bytes);
      residual(y.data(), tail.out->bias.data(), tail.after_attention);
    }
    const PanelOutput expanded = multiply(*tail.expand, rows.input + row * row_bytes);
    const auto expanded_row = [&](const PanelOutput& panel, long i) {
      return static_cast<std::byte*>(panel.data()) + i * expanded_bytes;
    };
    if (tail.gate != nullptr) {
      const PanelOutput gates = multiply(*tail.gate, rows.input + row * row_bytes);
      each(used, [&](long i) {
        kernels.bias_gate(expanded_row(expanded, i), tail.expand->bias.data(),
                          expanded_row(gates, i), tail.gate->bias.data(), tail.expand->out(),
                          tail.activation);
      });
    } else {
      each(used, [&](long i) {
        kernels.bias_act(expanded_row(expanded, i), tail.expand->bias.data(), tail.expand->out(),
                         tail.activation);
      });
    }
    const PanelOutput y = multiply(*tail.contract, expanded.data());
    residual(y.data(), tail.contract->bias.data(), tail.after_layer);
    row += used;
  }
}

size_t TailPanelBytes(int64_t width, int64_t expanded, Compute compute) {
  return static_cast<size_t>(kPanelRows * (width + expanded) * ElementBytes(compute));
}

}  // namespace longview::models
