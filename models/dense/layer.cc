#include "models/dense/layer.h"

#include <algorithm>
#include <cstring>

#include "models/parallel.h"

namespace longview::models {

void ApplyToRows(const DenseLayer& layer, std::span<const float* const> rows, Activation act,
                 const kernels::ParallelFor& pool, float* out) {
  const Compute compute = layer.linear.compute();
  const RowKernels& kernels = ChooseRowKernels(compute);
  const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
  const std::vector<float> no_bias(act == Activation::kNone ? 0 : layer.out());
  const int64_t in_bytes = layer.in() * ElementBytes(compute);
  const int64_t out_bytes = layer.out() * ElementBytes(compute);
  std::vector<char> panel(static_cast<size_t>(kPanelRows * in_bytes));
  const auto total = static_cast<int64_t>(rows.size());
  for (int64_t first = 0; first < total;) {
    const int size = NextPanel(layer.linear.sizes(), total - first);
    const int64_t used = std::min<int64_t>(size, total - first);
    for (int64_t i = 0; i < used; ++i) {
      kernels.narrow(rows[first + i], layer.in(), panel.data() + i * in_bytes);
    }
    const PanelOutput y = layer.linear.Panel(panel.data(), size, used);
    ParallelRanges(pool, used, 4, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) {
        float* row = out + (first + i) * layer.out();
        kernels.bias_widen(static_cast<const char*>(y.data()) + i * out_bytes, layer.bias.data(),
                           layer.out(), row);
        if (act != Activation::kNone) floats.bias_act(row, no_bias.data(), layer.out(), act);
      }
    });
    first += used;
  }
}

}  // namespace longview::models
