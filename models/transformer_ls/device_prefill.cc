#include "models/transformer_ls/device_prefill.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/span/launch_shape.h"
#include "kernels/cuda/token/cache_rows.h"
#include "models/layers/span_rows.h"
#include "models/transformer_ls/cache_layout.h"

namespace longview::models {

CarvedPass CarvePass(const LsLmConfig& config, Compute compute, const LsPassLayout& layout,
                     std::byte* base) {
  StagedLists counted(nullptr, nullptr);
  const DeviceLsLists lists = StageLists(config, layout, nullptr, nullptr, nullptr, counted);
  Carver carver(base);
  const int64_t rows = layout.rows, element = ElementBytes(compute);
  const auto typed = [&](int64_t count, int64_t columns) {
    return carver.TakeBytes(static_cast<size_t>(count * columns * element));
  };
  DeviceLsBuffers b;
  b.x = carver.Take<float>((rows + kDevicePanelTail) * config.width);
  b.input = compute == Compute::kFp32 ? reinterpret_cast<std::byte*>(b.x)
                                      : typed(rows + kDevicePanelTail, config.width);
  b.y = typed(rows + kDevicePanelTail, 3 * config.width + config.columns());
  b.keys = typed(rows, config.width);
  b.values = typed(rows, config.width);
  b.scores = carver.Take<float>(rows * config.columns());
  b.z = typed(rows + kDevicePanelTail, config.width);
  b.wide = typed(rows + kDevicePanelTail, config.intermediate);
  b.states =
      carver.TakeBytes(static_cast<size_t>(layout.closed_segments()) * DeviceStateBytes(config));
  size_t partials = 0;
  for (const DeviceLsGroup& group : lists.groups) {
    partials = std::max(partials, DevicePartialBytes(group.plan, config.head_dim()));
  }
  b.partials = carver.TakeBytes(partials);
  // Panels larger than kDevicePanel are for more rows (device_panels.h).
  const int64_t wanted = layout.wanted > 0 ? kDevicePanel : 0;
  b.logit_input = typed(wanted, config.width);
  b.rounded = typed(wanted, config.vocab);
  b.logits = carver.Take<float>(std::min(wanted, kDeviceLogitRows) * config.vocab);
  return {{counted.used(), carver.used()}, b};
}

// Long chunks at the end of longest texts, and as many short ones there beside them, are more than
// any pass has in rows and in tiles. Where spans and pieces begin moves with the text: a quarter
// more.
DevicePassBytes MostPassBytes(const LsLmConfig& config, Compute compute, int max_tokens) {
  const std::vector<int32_t> ids(static_cast<size_t>(kDevicePassTokens));
  std::vector<TokenRun> runs;
  const auto add = [&](kernels::CacheStep::Group group, int64_t tokens, int64_t start) {
    TokenRun& run = runs.emplace_back();
    run.group = group;
    run.ids = std::span(ids).first(static_cast<size_t>(tokens));
    run.start = start;
    run.wanted = tokens;
  };
  for (int64_t left = kDevicePassTokens; left > 0 && std::ssize(runs) < kDevicePassRuns;) {
    const int64_t tokens = std::min<int64_t>(left, max_tokens);
    add(kernels::CacheStep::kPrefill, tokens,
        (max_tokens - tokens) / kernels::kBlockSlots * kernels::kBlockSlots);
    left -= tokens;
  }
  for (int i = 0; i < kDevicePassRuns; ++i) add(kernels::CacheStep::kResume, 1, max_tokens - 1);
  const LsPassLayout layout = LayOutPass(config, std::move(runs), kernels::cuda::kDeviceTileRows);
  DevicePassBytes most = CarvePass(config, compute, layout, nullptr).bytes;
  most.lists = kernels::AlignUp(most.lists + most.lists / 4);
  most.buffers = kernels::AlignUp(most.buffers + most.buffers / 4);
  return most;
}

kernels::DType DevicePrefill::dtype() const { return SpanType(context_.compute); }

void DevicePrefill::Follow(const std::byte* y, const float* bias, const DeviceNorm* norm) const {
  Do(device_.api().token.stream, "the residual stream",
     {b_.x, y, bias, norm == nullptr ? kernels::cuda::RowNorm{} : norm->view(),
      context_.compute == Compute::kFp32 ? nullptr : b_.input, layout_.rows, config_.width,
      dtype()});
}

void DevicePrefill::Embed() const {
  const auto bytes = static_cast<int32_t>(config_.width * sizeof(float));
  Do(device_.api().rows.copy, "embeddings",
     {context_.weights->words, b_.x, lists_.ids, nullptr, layout_.rows, bytes, bytes, bytes});
  Follow(nullptr, nullptr, config_.pre_norm ? &LayerOf(0).norm1 : nullptr);
}

void DevicePrefill::Project(int layer) const {
  const DeviceLsLayer& weights = LayerOf(layer);
  MultiplyRows(device_, weights.project, b_.input, layout_.rows, b_.y);
  Do(device_.api().token.project, "keys and values",
     {b_.y, weights.project.bias, weights.window_norm.view(), b_.keys, b_.values, b_.scores,
      layout_.rows, config_.width, config_.columns(), dtype()});
  // A sequence's sums may end a segment and begin another in one pass.
  PoolSegments(layer, lists_.closing);
  if (lists_.closing.count > 0) {
    Do(device_.api().token.pages, "projected pages",
       {lists_.closing.runs, kernels::cuda::StateShift(context_.cache->shape(), layer),
        lists_.page_rows, kernels::cuda::RowsOf(*context_.cache, kLateStrip, layer),
        weights.segment_norm.view(), lists_.closing.count, config_.rank, dtype()});
  }
  PoolSegments(layer, lists_.open);
}

void DevicePrefill::PoolSegments(int layer, const DevicePieces& pieces) const {
  if (pieces.count == 0) return;
  const int64_t stride = 3 * config_.width + config_.columns();
  Do(device_.api().pool.append, "sums of segments",
     {{b_.scores, config_.columns(), config_.columns(), config_.rank, nullptr},
      {b_.y + row_bytes(), stride, config_.head_dim(), config_.head_dim(), dtype()},
      b_.y + 2 * row_bytes(),
      pieces.runs,
      pieces.count,
      kernels::cuda::StateShift(context_.cache->shape(), layer)});
}

void DevicePrefill::Attend(int layer, bool windows_only) const {
  const auto& [chunks, pieces] = lists_.groups;
  if (!windows_only) AttendGroup(layer, chunks);
  WriteWindow(layer, chunks);
  WriteWindow(layer, pieces);
  if (!windows_only) AttendGroup(layer, pieces);
}

void DevicePrefill::WriteWindow(int layer, const DeviceLsGroup& group) const {
  if (group.rows == 0) return;
  const int64_t first = group.row0 * row_bytes();
  Do(device_.api().token.store, "writing windows",
     {b_.keys + first, b_.values + first, group.window_rows,
      kernels::cuda::RowsOf(*context_.cache, kWindowStrip, layer), group.rows, dtype()});
}

void DevicePrefill::AttendGroup(int layer, const DeviceLsGroup& group) const {
  using kernels::cuda::SpanSource;
  if (group.rows == 0) return;
  const DeviceLsLayer& weights = LayerOf(layer);
  const int dim = config_.head_dim(), width = config_.width;
  kernels::cuda::SpanCall call = {};
  call.q = b_.y;
  call.out = b_.z;
  call.q_row_stride = 3 * width + config_.columns();
  call.out_row_stride = width;
  call.q_head_stride = call.out_head_stride = call.Dk = call.Dv = dim;
  call.element = DeviceElement(context_.compute);
  call.H = config_.heads;
  call.kv_group = 1;
  call.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  for (const LsSource kind : LsSources(config_, group.fresh)) {
    SpanSource& source = call.sources[call.sources_used++];
    if (kind == LsSource::kFresh) {
      source.k = b_.keys;
      source.v = b_.values;
      source.k_row_stride = source.v_row_stride = width;
      source.k_head_stride = source.v_head_stride = dim;
      source.layout = kernels::Layout::kRows;
    } else {
      const bool late = kind == LsSource::kLate;
      const DeviceBlockTable& table = late ? group.pages : group.window;
      source = kernels::cuda::BlocksOf(*context_.cache, late ? kLateStrip : kWindowStrip, layer,
                                       table.blocks, table.offsets);
    }
    if (kind != LsSource::kLate) source.q_add = weights.window_add;
  }
  const auto table = [&](const void* rows, int64_t entries, const float* add) {
    return kernels::cuda::SpanTable{rows, add,          entries * dim,
                                    dim,  call.element, static_cast<int32_t>(entries)};
  };
  call.tables[kWindowTable] = table(weights.window_table, config_.window, weights.distance_add);
  call.tables[kSegmentTable] = table(weights.segment_table, context_.weights->segment_ids, nullptr);
  models::Attend(device_, group.plan, call, b_.partials);
}

// pre_ln keeps the stream normalised: what follows the FFN is the next layer's norm1.
void DevicePrefill::Finish(int layer) const {
  const DeviceLsLayer& weights = LayerOf(layer);
  const bool last = layer + 1 == config_.layers;
  MultiplyRows(device_, weights.out, b_.z, layout_.rows, b_.y);
  Follow(b_.y, weights.out.bias, config_.pre_norm ? &weights.norm2 : &weights.norm1);
  MultiplyRows(device_, weights.expand, b_.input, layout_.rows, b_.wide);
  AddBias(device_, weights.expand, b_.wide, layout_.rows, config_.activation);
  MultiplyRows(device_, weights.contract, b_.wide, layout_.rows, b_.y);
  Follow(b_.y, weights.contract.bias,
         !config_.pre_norm ? &weights.norm2
         : last            ? nullptr
                           : &LayerOf(layer + 1).norm1);
}

void DevicePrefill::Logits(int64_t first, int64_t count) const {
  const DeviceLinear& logits = context_.weights->logits;
  const auto bytes = static_cast<int32_t>(row_bytes());
  Do(device_.api().rows.copy, "wanted rows",
     {b_.input, b_.logit_input, lists_.wanted + first, nullptr, count, bytes, bytes, bytes});
  MultiplyRows(device_, logits, b_.logit_input, count, b_.rounded);
  Do(device_.api().rows.widen, "logits",
     {b_.rounded, logits.bias, b_.logits, count, config_.vocab, dtype()});
}

}  // namespace longview::models
