#include "models/vil/device_block.h"

#include <algorithm>

#include "models/device/device_tail.h"

namespace longview::models {
namespace {

constexpr float kInstanceNormEps = 1e-5f;

}  // namespace

DeviceVilSteps::DeviceVilSteps(const DeviceVilContext& context, size_t index,
                               const DeviceVilStage& stage, const DeviceVilBuffers& buffers)
    : context_(context),
      device_(*context.device),
      planned_(stage),
      stage_(stage.stage()),
      weights_(context.weights->stages[index]),
      zeros_(context.weights->zeros.data()),
      buffers_(buffers),
      row_work_(device_, context.compute, stage_.width) {}

void DeviceVilSteps::Copy(const void* in, void* out, const int32_t* from, const int32_t* to,
                          int64_t rows) const {
  const kernels::cuda::CopyRows args = {
      in, out, from, to, rows, static_cast<int32_t>(row_bytes()), row_bytes(), row_bytes()};
  device_.Check(device_.api().rows.copy(device_.stream(), args), "copying rows");
}

void DeviceVilSteps::MakeTokens(const float* before) const {
  const DeviceVilLists& lists = planned_.lists();
  const int64_t side = stage_.patch;
  const DeviceLinear& linear = weights_.patch.device;
  const int64_t channels = linear.in / (side * side);
  if (before == nullptr) {
    const kernels::cuda::PixelPatches args = {lists.pixels,
                                              lists.pictures,
                                              planned_.images(),
                                              planned_.most_tokens(),
                                              static_cast<int32_t>(channels),
                                              stage_.patch,
                                              buffers_.patches,
                                              dtype()};
    device_.Check(maps().patches(device_.stream(), args), "patches of pixels");
  } else {
    const kernels::cuda::MapTaps args = {before,
                                         lists.taps,
                                         buffers_.patches,
                                         planned_.tokens() * side * side,
                                         static_cast<int32_t>(channels),
                                         dtype()};
    device_.Check(maps().taps(device_.stream(), args), "patches of a map");
  }
  MultiplyRows(device_, linear, buffers_.patches, planned_.tokens(), buffers_.made);
  const kernels::cuda::MapTokens tokens = {
      buffers_.made, linear.bias,     weights_.patch_norm.device.view(), lists.rows, lists.down,
      lists.across,  lists.down_rows, lists.across_rows,          buffers_.x, planned_.tokens(),
      stage_.width,  dtype()};
  device_.Check(maps().tokens(device_.stream(), tokens), "tokens of a map");
  const int64_t bytes = stage_.width * int64_t{sizeof(float)};
  const kernels::cuda::CopyRows class_rows = {weights_.class_rows.device(),
                                              buffers_.x,
                                              lists.class_rows,
                                              lists.globals,
                                              planned_.globals(),
                                              static_cast<int32_t>(bytes),
                                              bytes,
                                              bytes};
  device_.Check(device_.api().rows.copy(device_.stream(), class_rows), "class tokens");
}

void DeviceVilSteps::RunBlock(int block, const DeviceTimer& timer) const {
  const VilBlock& weights = BlockOf(block);
  if (block == 0) {
    timer.Run(&EncoderTimes::rest, [&] {
      row_work_.Prenorm(buffers_.x, weights.attention_norm.device, rows(), buffers_.normed);
    });
  }
  timer.Run(&EncoderTimes::linears, [&] { Project(weights); });
  timer.Run(&EncoderTimes::attention, [&] { Attend(block); });
  timer.Run(&EncoderTimes::linears, [&] { Finish(block); });
}

// All that attention reads of rows, while LN(x) is there.
void DeviceVilSteps::Project(const VilBlock& block) const {
  if (planned_.is_long_short()) return ProjectLongShort(block);
  ApplyLinear(device_, block.qkv.device, buffers_.normed, rows(), buffers_.qkv);
  if (Has(block.global_query)) ProjectGlobals(block);
  if (stage_.attention == VilAttention::kLinformer) ProjectByPositions(block);
  if (stage_.attention == VilAttention::kReduction) ProjectByReduction(block);
}

// The global rows' own keys and values are of every token.
void DeviceVilSteps::ProjectGlobals(const VilBlock& block) const {
  const int32_t* globals = planned_.lists().globals;
  ApplyLinear(device_, block.global_key_value.device, buffers_.normed, rows(), buffers_.global_kv);
  Copy(buffers_.normed, buffers_.global_inputs, globals, nullptr, planned_.globals());
  ApplyLinear(device_, block.global_query.device, buffers_.global_inputs, planned_.globals(),
              buffers_.global_outs);
  Copy(buffers_.global_outs, buffers_.global_q, nullptr, globals, planned_.globals());
}

void DeviceVilSteps::ProjectByPositions(const VilBlock& block) const {
  const int64_t d = stage_.width;
  for (int part = 0; part < 2; ++part) {
    const bool own = part == 1 && block.project_values;
    const kernels::cuda::PositionSums args = {
        Column(buffers_.qkv, (1 + part) * d, context_.compute),
        3 * d,
        own ? block.project_values.device() : block.project_keys.device(),
        planned_.lists().begins,
        planned_.images(),
        static_cast<int32_t>(rows() / planned_.images()),
        stage_.features,
        stage_.width,
        Column(buffers_.keys, part * d, context_.compute),
        2 * d,
        dtype()};
    device_.Check(maps().position_sums(device_.stream(), args), "keys over positions");
  }
}

void DeviceVilSteps::ProjectByReduction(const VilBlock& block) const {
  const DeviceVilLists& lists = planned_.lists();
  const int64_t places = planned_.reduced_places();
  const int64_t taps = int64_t{stage_.features} * stage_.features;
  Copy(buffers_.normed, buffers_.reduced_taps, lists.reduced_from, nullptr, places * taps);
  MultiplyRows(device_, block.reduce.device, buffers_.reduced_taps, places, buffers_.reduced);
  const kernels::cuda::ColumnNorms norms = {
      buffers_.reduced, lists.reduced_begins, lists.reduced_keys,  planned_.images(),
      stage_.width,     kInstanceNormEps,     buffers_.key_inputs, dtype()};
  device_.Check(maps().column_norms(device_.stream(), norms), "an instance norm");
  Copy(buffers_.normed, buffers_.key_inputs, lists.globals, lists.global_keys, planned_.globals());
  ApplyLinear(device_, block.key_value.device, buffers_.key_inputs, planned_.plan().keys,
              buffers_.keys);
}

void DeviceVilSteps::MakeBiases(int block) const {
  for (const DeviceMapBias& map : planned_.biases()) {
    const float* stored = BlockOf(block).bias.local.device();
    const float* learned = map.learned.empty() ? stored : map.learned[block];
    const kernels::cuda::BiasTable args = {learned,
                                           map.learned_entries,
                                           map.entries,
                                           map.count,
                                           stage_.heads,
                                           buffers_.bias + map.first,
                                           planned_.bias_entries()};
    device_.Check(maps().bias_table(device_.stream(), args), "biases of a map");
  }
}

kernels::cuda::SpanTable DeviceBiasTable(const float* values, int64_t entries) {
  kernels::cuda::SpanTable table = {};
  table.data = values;
  table.head_stride = entries;
  table.element = kernels::cuda::Element::kFloat32;
  table.entries = static_cast<int32_t>(entries);
  return table;
}

kernels::cuda::SpanCall DeviceVilSteps::HeadsCall(int block, bool separate_globals) const {
  const int64_t d = stage_.width;
  const bool reduces = stage_.attention == VilAttention::kReduction;
  kernels::cuda::SpanCall call = DeviceHeadsCall(context_.compute, stage_.heads, stage_.head_dim());
  call.q = separate_globals ? buffers_.global_q : buffers_.qkv;
  if (!separate_globals && !reduces) call.q_row_stride = 3 * d;
  call.out = buffers_.normed;

  const bool projected = planned_.plan().keys > 0;
  const std::byte* keys = projected          ? buffers_.keys
                          : separate_globals ? buffers_.global_kv
                                             : buffers_.qkv + row_bytes();
  call.sources_used = planned_.sources();
  std::fill_n(call.sources, call.sources_used,
              DeviceHeadsSource(keys, keys + row_bytes(),
                                projected || separate_globals ? 2 * d : 3 * d, stage_.head_dim()));
  // The cyclic rule's third source: padding, whose keys and values are zero.
  if (call.sources_used > 2) {
    kernels::cuda::SpanSource& padding = call.sources[2];
    padding.k = padding.v = zeros_;
    padding.k_row_stride = padding.v_row_stride = 0;
  }
  if (!stage_.relative_bias()) return call;
  const int64_t g = stage_.globals;
  call.tables[0] = DeviceBiasTable(BlockOf(block).bias.mixed.device(), 2 * g);
  call.tables[1] = DeviceBiasTable(BlockOf(block).bias.global.device(), g * g);
  call.tables[2] = DeviceBiasTable(buffers_.bias, planned_.bias_entries());
  return call;
}

void DeviceVilSteps::AttendByFeatures(const VilBlock& block) const {
  const int64_t d = stage_.width;
  kernels::cuda::PerformerRows args = {};
  args.q = buffers_.qkv;
  args.k = Column(buffers_.qkv, d, context_.compute);
  args.v = Column(buffers_.qkv, 2 * d, context_.compute);
  args.out = buffers_.normed;
  args.dtype = dtype();
  args.row_stride = 3 * d;
  args.out_row_stride = d;
  args.heads = stage_.heads;
  args.width = stage_.head_dim();
  args.features = stage_.features;
  args.projection = block.features.device();
  args.offsets = planned_.lists().begins;
  args.images = planned_.images();
  args.longest = static_cast<int32_t>(planned_.most_tokens()) + stage_.globals;
  args.tops = buffers_.tops;
  args.sums = buffers_.sums;
  device_.Check(device_.api().performer.run(device_.stream(), args), "random features");
}

void DeviceVilSteps::Attend(int block) const {
  if (stage_.attention == VilAttention::kPerformer) return AttendByFeatures(BlockOf(block));
  if (stage_.relative_bias()) MakeBiases(block);
  if (planned_.is_long_short()) return AttendLongShort(block);
  AttendSpans(block);
}

void DeviceVilSteps::AttendSpans(int block) const {
  models::Attend(device_, planned_.attention(), HeadsCall(block, false), buffers_.partials);
  if (!planned_.separates_globals()) return;
  models::Attend(device_, planned_.global_attention(), HeadsCall(block, true), buffers_.partials);
}

// From attention's output to the next block's input. What a panel touches behind its rows comes
// later, or is scratch.
void DeviceVilSteps::Finish(int block) const {
  const VilBlock& weights = BlockOf(block);
  if (Has(weights.global_out)) ApplyOuts(weights);
  DeviceTail tail;
  tail.out = Has(weights.global_out) ? nullptr : &weights.out.device;
  tail.after_attention = &weights.mlp_norm.device;
  tail.expand = &weights.expand.device;
  tail.contract = &weights.contract.device;
  const bool last = block + 1 == stage_.blocks;
  tail.after_layer = last ? nullptr : &BlockOf(block + 1).attention_norm.device;
  tail.norms = NormPlace::kPre;
  for (int64_t row = 0; row < rows(); row += kDeviceTailRows) {
    DeviceTailRows part;
    part.x = buffers_.x + row * stage_.width;
    part.input = buffers_.normed + row * row_bytes();
    part.z = (Has(weights.global_out) ? buffers_.qkv : buffers_.normed) + row * row_bytes();
    part.wide = buffers_.wide;
    part.added = buffers_.added;
    part.rows = std::min(kDeviceTailRows, rows() - row);
    RunDeviceTail(device_, tail, part);
  }
}

// The outputs of rows whose last linear depends on what they are, in qkv.
void DeviceVilSteps::ApplyOuts(const VilBlock& block) const {
  const int32_t* globals = planned_.lists().globals;
  ApplyLinear(device_, block.out.device, buffers_.normed, rows(), buffers_.qkv);
  Copy(buffers_.normed, buffers_.global_inputs, globals, nullptr, planned_.globals());
  ApplyLinear(device_, block.global_out.device, buffers_.global_inputs, planned_.globals(),
              buffers_.global_outs);
  Copy(buffers_.global_outs, buffers_.qkv, nullptr, globals, planned_.globals());
}

}  // namespace longview::models
