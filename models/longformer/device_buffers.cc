#include "models/longformer/device_buffers.h"

#include <algorithm>

#include "models/device/device_panels.h"

namespace longview::models {
namespace {

// Maxima over the plans of a batch.
struct Sizes {
  int64_t subset_outputs = 0;
  int64_t globals = 0;
  int64_t global_keys = 0;
  int64_t fold_columns = 0;  // Of all sequences.
  int64_t fold_scores = 0;
  int64_t fold_states = 0;  // Pieces times columns of a sequence.
  size_t partials = 0;

  void Include(const DeviceLayerPlan& plan, int64_t rows, int head_dim) {
    const auto grow = [](auto& size, auto to) {
      size = std::max(size, static_cast<std::decay_t<decltype(size)>>(to));
    };
    if (!plan.host.whole) grow(subset_outputs, plan.host.outputs);
    grow(globals, plan.host.unfolded.size());
    grow(global_keys, plan.host.global_key_rows);
    for (const FoldBatch& fold : plan.folds) {
      grow(globals, fold.globals());
      grow(fold_columns, fold.shape.sequences * fold.columns());
      grow(fold_scores, rows * fold.columns());
      grow(fold_states, fold.pieces * fold.columns());
    }
    grow(partials, DevicePartialBytes(plan.band, head_dim));
    grow(partials, DevicePartialBytes(plan.full, head_dim));
  }
};

}  // namespace

DeviceBuffers CarveDeviceBuffers(const LongformerConfig& config, Compute compute,
                                 const DeviceBatch& batch, Carver& carver) {
  const int64_t rows = batch.rows(), width = config.width;
  Sizes sizes;
  for (const DeviceLayerPlan& plan : batch.plans()) sizes.Include(plan, rows, config.head_dim());
  // Rows of T that linears touch; none if there are none.
  const auto panels = [&](int64_t count, int64_t columns) {
    const int64_t padded = count == 0 ? 0 : count + kDevicePanelTail;
    return carver.TakeBytes(static_cast<size_t>(padded * columns * ElementBytes(compute)));
  };
  const auto stream = [&](int64_t count) {
    return carver.Take<float>(count == 0 ? 0 : (count + kDevicePanelTail) * width);
  };
  DeviceBuffers b;
  b.x = stream(rows);
  b.kept = stream(sizes.subset_outputs);
  const bool fp32 = compute == Compute::kFp32;
  b.input = fp32 ? reinterpret_cast<std::byte*>(b.x) : panels(rows, width);
  b.kept_input = fp32 ? reinterpret_cast<std::byte*>(b.kept) : panels(sizes.subset_outputs, width);
  b.qkv = panels(rows, 3 * width);
  b.z = panels(rows, width);
  b.wide = panels(rows, config.intermediate);
  b.queries = panels(sizes.subset_outputs, width);
  b.global_keys = panels(sizes.global_keys, 2 * width);
  b.global_inputs = panels(sizes.globals, width);
  b.global_queries = panels(sizes.globals, width);
  b.global_out = panels(sizes.globals, width);
  b.global_rows = carver.Take<float>(sizes.globals * width);
  b.fold_vectors = carver.Take<float>(sizes.fold_columns * width);
  b.fold_scores = carver.Take<float>(sizes.fold_scores);
  b.fold_means = carver.Take<float>(sizes.fold_columns * width);
  b.fold_sums.m = carver.Take<float>(sizes.fold_states);
  b.fold_sums.s = carver.Take<float>(sizes.fold_states);
  b.fold_sums.sums = carver.Take<float>(sizes.fold_states * width);
  b.partials = carver.TakeBytes(sizes.partials);
  return b;
}

}  // namespace longview::models
