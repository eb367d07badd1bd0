#include "models/longformer/piecewise_encoder.h"

#include <algorithm>
#include <numeric>

#include "kernels/span/band_planner.h"
#include "kernels/span/full_planner.h"
#include "models/ops/embed.h"
#include "models/ops/host_backend.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"

namespace longview::models {
namespace {

using kernels::kBlockSlots;

// Attention's rate against that of linears: only how evenly pieces divide the work hangs on it.
constexpr double kAttentionPrice = 2.5;

}  // namespace

PiecewiseEncoder::Shape::Shape(const LongformerContext& model, const EncoderSequence& read)
    : context(model),
      document(read),
      tokens(read.tokens()),
      width(model.config->width),
      globals(GlobalsOf(read)),
      folds(!globals.empty() && FoldsGlobals(*model.config, static_cast<int>(globals.size()))) {}

PiecewiseEncoder::Held PiecewiseEncoder::TakeHeld(const Shape& shape, Backend& backend) {
  using enum RowType;
  using enum Backend::Tail;
  const int64_t n = shape.tokens, width = shape.width;
  const auto globals = static_cast<int64_t>(shape.globals.size());
  Held held;
  held.x = backend.Take(n, width, kFloat, kPanel);
  held.input = backend.TakeInput(held.x, NormPlace::kPost);
  for (Rows& qkv : held.qkv) qkv = backend.Take(n, 3 * width, kCompute);
  if (globals > 0 && !shape.folds) held.global_keys = backend.Take(n, 2 * width, kCompute);
  if (shape.folds) held.folded_out = backend.Take(globals, width, kCompute);
  return held;
}

size_t PiecewiseEncoder::HeldBytes(const LongformerContext& context,
                                   const EncoderSequence& document) {
  HostBackend count(context);
  TakeHeld(Shape(context, document), count);
  return count.need().memory();
}

PiecewiseEncoder::PiecewiseEncoder(const LongformerContext& context,
                                   const EncoderSequence& document, EncodedRows& sink,
                                   ScratchPool& scratch, RunTimes* times)
    : shape_(context, document),
      context_(shape_.context),
      sink_(sink),
      scratch_(scratch),
      times_(times),
      memory_(HeldBytes(context, document)) {
  HostBackend backend(context, ForwardNeed(), memory_.data(), nullptr);
  held_ = TakeHeld(shape_, backend);
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

template <typename Body>
void PiecewiseEncoder::Run(Body&& body) {
  HostBackend count(context_);
  body(count);
  const ScratchLease lease(scratch_, count.need().memory());
  HostBackend backend(context_, count.need(), lease.data(), times_);
  body(backend);
}

void PiecewiseEncoder::RunPiece(const Step& step, int64_t first, int64_t count) {
  const int layer = step.layer;
  switch (step.stage) {
    case Stage::kEnter:
      Run([&](Backend& backend) { Enter(backend, shape_, held_, first, count); });
      return Run([&](Backend& backend) { Project(backend, shape_, held_, 0, first, count); });
    case Stage::kGlobalKeys:
      return Run(
          [&](Backend& backend) { ProjectKeys(backend, shape_, held_, layer, first, count); });
    case Stage::kLayer:
      if (first == 0 && shape_.folds) {
        StagedLayer folded{PlanFolded(shape_)};
        Run([&](Backend& backend) { FoldGlobals(backend, shape_, held_, layer, folded); });
      }
      {
        StagedLayer plan{PlanRows(shape_, layer, first, count)};
        Run([&](Backend& backend) { RunLayer(backend, shape_, held_, layer, first, plan); });
      }
      if (layer + 1 < context_.config->layers) {
        return Run(
            [&](Backend& backend) { Project(backend, shape_, held_, layer + 1, first, count); });
      }
      sink_.Take(first, count, held_.x.From(first).floats(), held_.input.Row(first));
  }
}

void PiecewiseEncoder::Enter(Backend& backend, const Shape& shape, const Held& held, int64_t first,
                             int64_t count) {
  const auto part = [&](const std::vector<int32_t>& values) {
    return std::span(values).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  };
  ops::Embed args;
  args.words = &shape.context.weights->words;
  args.positions = &shape.context.weights->positions;
  args.ids = backend.Stage(part(shape.document.ids));
  args.places = backend.Stage(part(shape.document.positions));
  args.norm = &shape.context.weights->embedding_norm;
  args.x = held.x.From(first).First(count);
  args.input = held.input.From(first).First(count);
  backend.Run(args);
}

void PiecewiseEncoder::Project(Backend& backend, const Shape& shape, const Held& held, int layer,
                               int64_t first, int64_t count) {
  const Rows& qkv = held.qkv[static_cast<size_t>(layer % 2)];
  backend.Run(ops::Project{shape.context.weights->layers[static_cast<size_t>(layer)].qkv,
                           held.input.From(first).First(count), qkv.From(first).First(count)});
}

void PiecewiseEncoder::ProjectKeys(Backend& backend, const Shape& shape, const Held& held,
                                   int layer, int64_t first, int64_t count) {
  backend.Run(
      ops::Project{shape.context.weights->layers[static_cast<size_t>(layer)].key_value_global,
                   held.input.From(first).First(count), held.global_keys.From(first).First(count)});
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
void PiecewiseEncoder::FoldGlobals(Backend& backend, const Shape& shape, const Held& held,
                                   int layer, StagedLayer& plan) {
  StageLayer(backend, shape.document.roles, plan);
  LongformerRows rows;
  rows.x = held.x;
  rows.input = held.input;
  rows.folded_out = held.folded_out;
  const LongformerContext& context = shape.context;
  const LongformerLayerRun run(*context.config, context.weights->layers[static_cast<size_t>(layer)],
                               context.compute, rows);
  run.AttendGlobal(backend, plan);
}

// Keys from the start of a block on, so that their places on the grid are those of the whole.
LayerPlan PiecewiseEncoder::PlanRows(const Shape& shape, int layer, int64_t first, int64_t count) {
  const LongformerContext& context = shape.context;
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
  LayerPiece& piece = plan.pieces.emplace_back();
  piece.band = PlanBand(pattern, {&band, 1});
  const auto begin_global = std::lower_bound(shape.globals.begin(), shape.globals.end(), first);
  const auto end_global = std::lower_bound(begin_global, shape.globals.end(), first + count);
  LayerPiece::Globals& placed = shape.folds ? piece.folded : piece.unfolded;
  for (auto t = begin_global; t != end_global; ++t) {
    placed.places.push_back(static_cast<int32_t>(*t - first));
  }
  if (shape.folds) {
    piece.folded.first = begin_global - shape.globals.begin();
    return plan;
  }
  for (auto t = begin_global; t != end_global; ++t) {
    plan.unfolded.push_back({0, *t, static_cast<int32_t>(plan.unfolded.size())});
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

void PiecewiseEncoder::RunLayer(Backend& backend, const Shape& shape, const Held& held, int layer,
                                int64_t first, StagedLayer& plan) {
  const LongformerContext& context = shape.context;
  const int64_t count = plan.host.outputs;
  StageLayer(backend, shape.document.roles, plan);
  LongformerRows rows;
  rows.x = held.x;
  rows.input = held.input;
  rows.qkv = held.qkv[static_cast<size_t>(layer % 2)];
  rows.z = backend.Take(count, shape.width, RowType::kCompute, Backend::Tail::kPanel);
  const StagedLayer* const layers[] = {&plan};
  TakeGlobalRows(backend, *context.config, layers, rows);
  rows.global_keys = held.global_keys;
  rows.folded_out = held.folded_out;
  const LongformerLayerRun run(*context.config, context.weights->layers[static_cast<size_t>(layer)],
                               context.compute, rows);
  const LayerPiece& piece = plan.host.pieces.front();
  run.AttendGlobal(backend, plan);
  run.AttendLocal(backend, plan.pieces.front().band,
                  rows.qkv.From(first).First(count).Columns(0, shape.width));
  run.PlaceGlobal(backend, piece, plan.pieces.front());
  run.Finish(backend, held.x.From(first).First(count), held.input.From(first).First(count), rows.z);
}

size_t PiecewiseEncoder::PieceBytes(const LongformerContext& context,
                                    const EncoderSequence& document) {
  const Shape shape(context, document);
  HostBackend holder(context);
  const Held held = TakeHeld(shape, holder);
  size_t most = 0;
  const auto include = [&](auto&& body) {
    HostBackend count(context);
    body(count);
    most = std::max(most, count.need().memory());
  };
  include([&](Backend& backend) { Enter(backend, shape, held, 0, shape.tokens); });
  for (int layer = 0; layer < context.config->layers; ++layer) {
    const std::vector<int>& windows = context.config->window;
    const auto same = std::find(windows.begin(), windows.end(), windows[layer]);
    if (same - windows.begin() != layer) continue;
    StagedLayer plan{PlanRows(shape, layer, 0, shape.tokens)};
    include([&](Backend& backend) { RunLayer(backend, shape, held, layer, 0, plan); });
  }
  if (!shape.folds) return most;
  StagedLayer folded{PlanFolded(shape)};
  include([&](Backend& backend) { FoldGlobals(backend, shape, held, 0, folded); });
  return most;
}

}  // namespace longview::models
