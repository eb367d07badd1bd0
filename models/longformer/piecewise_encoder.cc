#include "models/longformer/piecewise_encoder.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/span/band_planner.h"
#include "kernels/span/full_planner.h"
#include "models/checkpoint/convert.h"
#include "models/layers/block_tail.h"
#include "models/layers/panels.h"
#include "models/layers/span_rows.h"
#include "models/longformer/global_rows.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

using kernels::kBlockSlots;
using kernels::kGlobalToken;

// Attention's rate against that of linears: only how evenly pieces divide the work hangs on it.
constexpr double kAttentionPrice = 2.5;

std::vector<int32_t> GlobalsOf(const EncoderSequence& document) {
  std::vector<int32_t> globals;
  for (int32_t t = 0; t < document.tokens(); ++t) {
    if (document.roles[static_cast<size_t>(t)] == kGlobalToken) globals.push_back(t);
  }
  return globals;
}

}  // namespace

PiecewiseEncoder::Shape::Shape(const EncoderContext& model, const EncoderSequence& read)
    : context(model),
      document(read),
      tokens(read.tokens()),
      width(model.config->width),
      globals(GlobalsOf(read)),
      folds(!globals.empty() && FoldsGlobals(*model.config, static_cast<int>(globals.size()))) {}

PiecewiseEncoder::Held PiecewiseEncoder::CarveHeld(const Shape& shape, Carver& carver) {
  const EncoderContext& context = shape.context;
  const int64_t n = shape.tokens, width = shape.width;
  const auto globals = static_cast<int64_t>(shape.globals.size());
  const auto take = [&](int64_t rows, int64_t columns) {
    return carver.TakeBytes(static_cast<size_t>(rows * columns * ElementBytes(context.compute)));
  };
  Held held;
  held.x = carver.Take<float>((n + kPanelRows) * width);
  held.input = context.compute == Compute::kFp32 ? reinterpret_cast<std::byte*>(held.x)
                                                 : take(n + kPanelRows, width);
  for (std::byte*& qkv : held.qkv) qkv = take(n, 3 * width);
  held.global_keys = take(globals > 0 && !shape.folds ? n : 0, 2 * width);
  held.folded_out = take(shape.folds ? globals : 0, width);
  return held;
}

size_t PiecewiseEncoder::HeldBytes(const EncoderContext& context, const EncoderSequence& document) {
  Carver measure(nullptr);
  CarveHeld(Shape(context, document), measure);
  return measure.used();
}

PiecewiseEncoder::PiecewiseEncoder(const EncoderContext& context, const EncoderSequence& document,
                                   EncodedRows& sink, ScratchKeeper& scratch, EncoderTimes* times)
    : shape_(context, document),
      context_(shape_.context),
      sink_(sink),
      scratch_(scratch),
      times_(times),
      width_(shape_.width),
      row_bytes_(width_ * ElementBytes(context.compute)),
      memory_(HeldBytes(context, document)) {
  Carver carver(memory_.data());
  held_ = CarveHeld(shape_, carver);
  std::memset(held_.x + shape_.tokens * width_, 0,
              static_cast<size_t>(kPanelRows * width_) * sizeof(float));
  std::memset(held_.input + shape_.tokens * row_bytes_, 0,
              static_cast<size_t>(kPanelRows * row_bytes_));
  PlanSteps(sink);
}

void PiecewiseEncoder::PlanSteps(const EncodedRows& sink) {
  const LongformerConfig& config = *context_.config;
  const double width = config.width, square = width * width;
  const bool keys = !shape_.globals.empty() && !shape_.folds;
  steps_.push_back({Stage::kEnter, 0, 3 * square});
  for (int layer = 0; layer < config.layers; ++layer) {
    if (keys) steps_.push_back({Stage::kGlobalKeys, layer, 2 * square});
    const double seen = std::min<double>(2 * config.window[static_cast<size_t>(layer)] + 1,
                                         static_cast<double>(shape_.tokens)) +
                        static_cast<double>(shape_.globals.size());
    const double next = layer + 1 < config.layers ? 3 * square : sink.LinearWork();
    steps_.push_back(
        {Stage::kLayer, layer,
         square + 2 * width * config.intermediate + 2 * width * seen * kAttentionPrice + next});
  }
  costs_.push_back(0);
  for (const Step& step : steps_) {
    costs_.push_back(costs_.back() + step.cost * static_cast<double>(shape_.tokens));
  }
}

int64_t PiecewiseEncoder::RowsUntil(int64_t read) const {
  const auto stages = static_cast<int64_t>(steps_.size());
  if (read >= shape_.tokens) return stages * shape_.tokens;
  const double target =
      costs_.back() * static_cast<double>(read) / static_cast<double>(shape_.tokens);
  const auto stage = std::upper_bound(costs_.begin(), costs_.end(), target) - costs_.begin() - 1;
  const auto row = static_cast<int64_t>((target - costs_[static_cast<size_t>(stage)]) /
                                        steps_[static_cast<size_t>(stage)].cost);
  const int64_t whole = (row + kBlockSlots - 1) / kBlockSlots * kBlockSlots;
  return stage * shape_.tokens + std::min(whole, shape_.tokens);
}

bool PiecewiseEncoder::Advance(int64_t until) {
  if (done_ >= until) return false;
  const int64_t stage = done_ / shape_.tokens, first = done_ % shape_.tokens;
  const int64_t count = std::min(shape_.tokens - first, until - done_);
  RunPiece(steps_[static_cast<size_t>(stage)], first, count);
  done_ += count;
  return done_ < until;
}

void PiecewiseEncoder::RunPiece(const Step& step, int64_t first, int64_t count) {
  switch (step.stage) {
    case Stage::kEnter:
      Enter(first, count);
      return Project(0, first, count);
    case Stage::kGlobalKeys:
      return ProjectKeys(step.layer, first, count);
    case Stage::kLayer:
      if (first == 0 && shape_.folds) FoldGlobals(step.layer);
      RunLayer(step.layer, first, count);
      if (step.layer + 1 < context_.config->layers) return Project(step.layer + 1, first, count);
      sink_.Take(first, count, held_.x + first * width_, held_.input + first * row_bytes_);
  }
}

void PiecewiseEncoder::Enter(int64_t first, int64_t count) {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  const LongformerWeights& weights = *context_.weights;
  const RowKernels& rows = ChooseRowKernels(context_.compute);
  const int threads = context_.pool->threads();
  const auto width = static_cast<size_t>(width_);
  const ScratchLoan loan(scratch_, 2 * width * static_cast<size_t>(threads) * sizeof(float));
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* word = reinterpret_cast<float*>(loan.data()) + 2 * width_ * thread;
    float* position = word + width_;
    const int64_t begin = first + count * thread / threads;
    const int64_t end = first + count * (thread + 1) / threads;
    for (int64_t t = begin; t < end; ++t) {
      const auto token = static_cast<size_t>(t);
      CopyFloat32(*weights.words, shape_.document.ids[token] * width_, {word, width});
      CopyFloat32(*weights.positions, shape_.document.positions[token] * width_, {position, width});
      rows.sum_norm(held_.x + t * width_, word, position, weights.types.data(),
                    weights.embedding_norm.view(), width_, held_.input + t * row_bytes_);
    }
  });
}

void PiecewiseEncoder::Project(int layer, int64_t first, int64_t count) {
  const DenseLayer& qkv = context_.weights->layers[static_cast<size_t>(layer)].qkv;
  const RowKernels& rows = ChooseRowKernels(context_.compute);
  std::byte* to = held_.qkv[static_cast<size_t>(layer % 2)] + first * 3 * row_bytes_;
  ForEachRow(qkv, held_.input + first * row_bytes_, count, context_.weights->sizes, *context_.pool,
             times_, [&](int64_t row, std::byte* y) {
               rows.bias_copy(y, qkv.bias.data(), 3 * width_, to + row * 3 * row_bytes_);
             });
}

void PiecewiseEncoder::ProjectKeys(int layer, int64_t first, int64_t count) {
  LayerPlan plan;
  const auto row = static_cast<int32_t>(first);
  plan.unfolded_groups.push_back({0, 0, 0, row, static_cast<int32_t>(count), row});
  EncoderBuffers buffers;
  buffers.input = held_.input;
  buffers.global_keys = held_.global_keys;
  const Stopwatch watch(times_ ? &times_->linears : nullptr);
  ProjectGlobalKeys(context_, context_.weights->layers[static_cast<size_t>(layer)], plan, buffers);
}

LayerPlan PiecewiseEncoder::PlanFolded(const Shape& shape) {
  LayerPlan plan;
  plan.inputs = shape.tokens;
  for (size_t i = 0; i < shape.globals.size(); ++i) {
    plan.folded.push_back({0, shape.globals[i], static_cast<int32_t>(i)});
  }
  plan.folded_groups.push_back(
      {0, 0, static_cast<int32_t>(shape.globals.size()), 0, static_cast<int32_t>(shape.tokens), 0});
  return plan;
}

// Global rows read the layer's input of all tokens, which pieces overwrite: before the first one.
void PiecewiseEncoder::FoldGlobals(int layer) {
  const LayerPlan plan = PlanFolded(shape_);
  Carver measure(nullptr);
  CarvePiece(shape_, held_, plan, measure);
  const ScratchLoan loan(scratch_, measure.used());
  Carver carver(loan.data());
  EncoderBuffers buffers = CarvePiece(shape_, held_, plan, carver);
  buffers.z = held_.folded_out;
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  AttendGlobal(context_, context_.weights->layers[static_cast<size_t>(layer)], plan,
               shape_.document.roles, buffers);
}

// Keys from the start of a block on, so that their places on the grid are those of the whole.
LayerPlan PiecewiseEncoder::PlanRows(const Shape& shape, int layer, int64_t first, int64_t count) {
  const EncoderContext& context = shape.context;
  const LongformerConfig& config = *context.config;
  const int64_t window = config.window[static_cast<size_t>(layer)];
  const int64_t begin = std::max<int64_t>(0, first - window) / kBlockSlots * kBlockSlots;
  const int64_t end = std::min(shape.tokens, first + count + window);
  const int tile_rows = context.tile_rows();
  std::vector<int32_t> wanted(static_cast<size_t>(count));
  std::iota(wanted.begin(), wanted.end(), static_cast<int32_t>(first - begin));
  std::vector<int32_t> globals = shape.globals;
  for (int32_t& position : globals) position -= static_cast<int32_t>(begin);
  kernels::BandSequence band;
  band.row0 = static_cast<int32_t>(begin);
  band.tokens = static_cast<int32_t>(end - begin);
  band.roles = std::span(shape.document.roles)
                   .subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  band.wanted = &wanted;
  band.globals = &globals;
  kernels::BandPattern pattern;
  pattern.heads = config.heads;
  pattern.window_left = pattern.window_right = static_cast<int32_t>(window);
  pattern.tile_rows = tile_rows;
  LayerPlan plan;
  plan.whole = false;
  plan.inputs = plan.outputs = count;
  plan.band = PlanBand(pattern, {&band, 1});
  if (shape.folds) return plan;
  for (const int32_t t : shape.globals) {
    if (t >= first && t < first + count) {
      plan.unfolded.push_back({0, t, static_cast<int32_t>(t - first)});
    }
  }
  if (plan.unfolded.empty()) return plan;
  kernels::FullSequence full;
  full.queries = static_cast<int32_t>(plan.unfolded.size());
  full.keys = static_cast<int32_t>(shape.tokens);
  full.visible = shape.document.roles;
  kernels::FullPattern full_pattern;
  full_pattern.heads = config.heads;
  full_pattern.split = true;
  full_pattern.tile_rows = tile_rows;
  plan.full = PlanFull(full_pattern, {&full, 1});
  return plan;
}

EncoderBuffers PiecewiseEncoder::CarvePiece(const Shape& shape, const Held& held,
                                            const LayerPlan& plan, Carver& carver) {
  const int64_t width = shape.width;
  const auto take = [&](int64_t rows) {
    return carver.TakeBytes(
        static_cast<size_t>(rows * width * ElementBytes(shape.context.compute)));
  };
  EncoderSizes sizes;
  sizes.Include(shape.context, plan);
  const int64_t globals = sizes.global_rows;
  EncoderBuffers b;
  b.x = held.x;
  b.input = held.input;
  b.global_keys = held.global_keys;
  b.z = take(plan.outputs > 0 ? plan.outputs + kPanelRows : 0);
  b.global_rows = carver.Take<float>(globals * width);
  b.global_queries = take(globals > 0 ? globals + kPanelRows : 0);
  b.global_out = take(globals);
  b.fold_vectors = carver.Take<float>(sizes.fold_columns * width);
  b.fold_scores = carver.Take<float>(sizes.fold_scores);
  b.fold_means = carver.Take<float>(sizes.fold_columns * width);
  b.workspace = carver.TakeBytes(sizes.workspace);
  return b;
}

void PiecewiseEncoder::AttendLocal(const LayerPlan& plan, int64_t first,
                                   const EncoderBuffers& buffers) {
  std::vector<kernels::Source> sources;
  kernels::Call call = BandCall(context_, plan, buffers, sources);
  call.q = buffers.qkv + first * 3 * row_bytes_;
  call.q_row_stride = 3 * width_;
  RunSpans(context_, plan.band, call, buffers.workspace);
}

void PiecewiseEncoder::RunLayer(int layer, int64_t first, int64_t count) {
  const LongformerLayer& weights = context_.weights->layers[static_cast<size_t>(layer)];
  const LayerPlan plan = PlanRows(shape_, layer, first, count);
  Carver measure(nullptr);
  CarvePiece(shape_, held_, plan, measure);
  const ScratchLoan loan(scratch_, measure.used());
  Carver carver(loan.data());
  EncoderBuffers buffers = CarvePiece(shape_, held_, plan, carver);
  std::memset(buffers.z + count * row_bytes_, 0, static_cast<size_t>(kPanelRows * row_bytes_));
  buffers.qkv = held_.qkv[static_cast<size_t>(layer % 2)];
  {
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    AttendLocal(plan, first, buffers);
    if (!plan.unfolded.empty())
      AttendGlobal(context_, weights, plan, shape_.document.roles, buffers);
    for (size_t i = 0; shape_.folds && i < shape_.globals.size(); ++i) {
      const int64_t row = shape_.globals[i] - first;
      if (row < 0 || row >= count) continue;
      std::memcpy(buffers.z + row * row_bytes_,
                  held_.folded_out + static_cast<int64_t>(i) * row_bytes_,
                  static_cast<size_t>(row_bytes_));
    }
  }
  const BlockTail tail = {&weights.out,      &weights.attention_norm, &weights.expand,
                          &weights.contract, &weights.output_norm,    context_.config->activation};
  RunBlockTail(tail, {held_.x + first * width_, held_.input + first * row_bytes_, buffers.z, count},
               context_.weights->sizes, *context_.pool, times_);
}

size_t PiecewiseEncoder::PieceBytes(const EncoderContext& context,
                                    const EncoderSequence& document) {
  const Shape shape(context, document);
  size_t most = 0;
  const auto include = [&](const LayerPlan& plan) {
    Carver measure(nullptr);
    CarvePiece(shape, Held(), plan, measure);
    most = std::max(most, measure.used());
  };
  for (int layer = 0; layer < context.config->layers; ++layer) {
    const std::vector<int>& windows = context.config->window;
    const auto same = std::find(windows.begin(), windows.end(), windows[layer]);
    if (same - windows.begin() == layer) include(PlanRows(shape, layer, 0, shape.tokens));
  }
  if (shape.folds) include(PlanFolded(shape));
  return most;
}

}  // namespace longview::models
