#include "models/transformer_ls/device_prefill.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/span/launch_shape.h"
#include "kernels/cuda/token/cache_rows.h"
#include "models/layers/span_rows.h"
#include "models/transformer_ls/cache_layout.h"

namespace longview::models {

using kernels::ScheduleSource;
using kernels::cuda::SpanSource;

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
  const int64_t pages =
      config.schedule == LsSchedule::kBlocks ? layout.closed_segments() * config.rank : 0;
  const int64_t page_rows = pages > 0 ? pages + kDevicePanelTail : 0;
  b.hidden = typed(page_rows, config.width);
  b.early = typed(page_rows, 3 * config.width + config.columns());
  // Panels larger than kDevicePanel are for more rows (device_panels.h).
  const int64_t wanted = layout.wanted > 0 ? kDevicePanel : 0;
  b.logit_input = typed(wanted, config.width);
  b.rounded = typed(wanted, config.vocab);
  b.logits = carver.Take<float>(std::min(wanted, kDeviceLogitRows) * config.vocab);
  return {{counted.used(), carver.used()}, b};
}

namespace {

// Long chunks that end at `end`, and as many short ones there beside them: more than any pass has
// in rows and in tiles.
LsPassLayout LargestAt(const LsLmConfig& config, int64_t end, std::span<const int32_t> ids) {
  std::vector<TokenRun> runs;
  const auto add = [&](kernels::CacheStep::Group group, int64_t tokens, int64_t start) {
    TokenRun& run = runs.emplace_back();
    run.group = group;
    run.ids = ids.first(static_cast<size_t>(tokens));
    run.start = start;
    run.wanted = tokens;
  };
  const int64_t longest =
      config.schedule == LsSchedule::kBlocks ? std::min<int64_t>(end, config.block) : end;
  for (int64_t left = std::ssize(ids); left > 0 && std::ssize(runs) < kDevicePassRuns;) {
    const int64_t tokens = std::min(left, longest);
    add(kernels::CacheStep::kPrefill, tokens,
        (end - tokens) / kernels::kBlockSlots * kernels::kBlockSlots);
    left -= tokens;
  }
  for (int i = 0; i < kDevicePassRuns; ++i) add(kernels::CacheStep::kResume, 1, end - 1);
  return LayOutPass(config, std::move(runs), kernels::cuda::kDeviceTileRows);
}

}  // namespace

// At the end of longest texts most is seen; zero memory is seen where a window, or the memory, is
// not full. Where spans and pieces begin moves with the text: a quarter more.
DevicePassBytes MostPassBytes(const LsLmConfig& config, Compute compute, int max_tokens) {
  const std::vector<int32_t> ids(static_cast<size_t>(kDevicePassTokens));
  std::vector<int> ends = {max_tokens};
  if (config.zero_memory) {
    for (const int end : {config.window, config.memory}) ends.push_back(std::min(end, max_tokens));
  }
  DevicePassBytes most;
  for (const int end : ends) {
    const DevicePassBytes bytes =
        CarvePass(config, compute, LargestAt(config, end, ids), nullptr).bytes;
    most.lists = std::max(most.lists, bytes.lists);
    most.buffers = std::max(most.buffers, bytes.buffers);
  }
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
  if (lists_.closing.count > 0) WritePages(layer);
  PoolSegments(layer, lists_.open);
}

void DevicePrefill::PoolSegments(int layer, const DevicePieces& pieces) const {
  if (pieces.count == 0) return;
  const int dim = config_.head_dim();
  AppendSums(layer, pieces, {b_.y + row_bytes(), projected(), dim, dim, dtype()},
             b_.y + 2 * row_bytes(), 0);
  if (config_.schedule == LsSchedule::kPaper) return;
  AppendSums(layer, pieces, {b_.x, config_.width, dim, dim, kernels::DType::kFloat32}, nullptr,
             config_.columns());
}

void DevicePrefill::AppendSums(int layer, const DevicePieces& pieces,
                               const kernels::cuda::PoolRows& values, const std::byte* second,
                               int column0) const {
  Do(device_.api().pool.append, "sums of segments",
     {{b_.scores, config_.columns(), config_.columns(), config_.rank, nullptr},
      values,
      second,
      pieces.runs,
      pieces.count,
      kernels::cuda::StateShift(context_.cache->shape(), layer),
      PoolColumns(config_),
      column0});
}

kernels::cuda::SegmentSums DevicePrefill::ClosingSums(int layer, int column0) const {
  return {lists_.closing.runs,  kernels::cuda::StateShift(context_.cache->shape(), layer),
          PoolColumns(config_), column0,
          lists_.closing.count, config_.rank};
}

void DevicePrefill::WritePages(int layer) const {
  Do(device_.api().token.pages, "projected pages",
     {ClosingSums(layer, 0), lists_.late_rows,
      kernels::cuda::RowsOf(*context_.cache, kLateStrip, layer), LayerOf(layer).segment_norm.view(),
      dtype()});
  if (config_.schedule == LsSchedule::kBlocks) WriteEarlyPages(layer);
}

// The same projection as a token's, of averaged hidden states.
void DevicePrefill::WriteEarlyPages(int layer) const {
  const DeviceLsLayer& weights = LayerOf(layer);
  const int32_t pages = lists_.closing.count * config_.rank;
  Do(device_.api().token.means, "averages of hidden states",
     {ClosingSums(layer, config_.columns()), lists_.early_rows, b_.hidden, config_.heads,
      config_.head_dim(), dtype()});
  MultiplyRows(device_, weights.project, b_.hidden, pages, b_.early);
  Do(device_.api().token.linear_pages, "early pages",
     {b_.early + row_bytes(), projected(), weights.project.bias + config_.width, lists_.early_rows,
      kernels::cuda::RowsOf(*context_.cache, kEarlyStrip, layer), weights.segment_norm.view(),
      pages, dtype()});
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
     {b_.keys + first, b_.values + first, config_.width, group.window_rows,
      kernels::cuda::RowsOf(*context_.cache, kWindowStrip, layer), group.rows, dtype()});
}

SpanSource DevicePrefill::SourceOf(ScheduleSource kind, int layer,
                                   const DeviceLsGroup& group) const {
  const DeviceLsLayer& weights = LayerOf(layer);
  const auto constant = [&](const kernels::cuda::ConstantBlock& block) {
    return ConstantBlocks(block, config_.heads, context_.weights->zeros);
  };
  if (kind == ScheduleSource::kConstantSegments) return constant(weights.zero_segments);
  if (kind == ScheduleSource::kConstantWindow) return constant(weights.zero_window);
  if (kind != ScheduleSource::kFresh) {
    const int strip = StripOf(kind);
    const DeviceBlockTable& table = group.tables[static_cast<size_t>(strip)];
    return kernels::cuda::BlocksOf(*context_.cache, strip, layer, table.blocks, table.offsets);
  }
  SpanSource source = {};
  source.k = b_.keys;
  source.v = b_.values;
  source.k_row_stride = source.v_row_stride = config_.width;
  source.k_head_stride = source.v_head_stride = config_.head_dim();
  source.layout = kernels::Layout::kRows;
  return source;
}

void DevicePrefill::AttendGroup(int layer, const DeviceLsGroup& group) const {
  if (group.rows == 0) return;
  const DeviceLsLayer& weights = LayerOf(layer);
  const int dim = config_.head_dim();
  kernels::cuda::SpanCall call = DeviceHeadsCall(context_.compute, config_.heads, dim);
  call.q = b_.y;
  call.out = b_.z;
  call.q_row_stride = projected();
  for (const ScheduleSource kind : config_.pattern().Sources(group.fresh)) {
    SpanSource& source = call.sources[call.sources_used++];
    source = SourceOf(kind, layer, group);
    if (OfWindow(kind)) source.q_add = weights.window_add;
  }
  const auto table = [&](const void* rows, int64_t entries, const float* add) {
    return kernels::cuda::SpanTable{rows, add,          entries * dim,
                                    dim,  call.element, static_cast<int32_t>(entries)};
  };
  call.tables[kernels::kWindowTable] =
      table(weights.window_table, config_.window, weights.distance_add);
  call.tables[kernels::kSegmentTable] =
      table(weights.segment_table, context_.weights->segment_ids, nullptr);
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
