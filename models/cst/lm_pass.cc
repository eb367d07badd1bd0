#include "models/cst/lm_pass.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/token/cache_rows.h"
#include "models/cst/layer_parts.h"
#include "models/cst/lm_cache.h"

namespace longview::models {

CstLmPass::CstLmPass(const CstConfig& config, const CstWeights& weights, const TokenFrame& frame,
                     std::vector<TokenRun> runs, int64_t logit_rows)
    : config_(config),
      weights_(weights),
      frame_(frame),
      logit_rows_(logit_rows),
      layout_(LayOutCstLm(config, std::move(runs), frame.tile_rows)),
      shape_(CstCacheShape(config, kernels::DType::kFloat32)),
      cutoffs_(config.cutoffs.begin(), config.cutoffs.end()) {
  for (const TokenRun& run : layout_.runs) {
    for (int64_t i = 0; i < run.wanted; ++i) {
      wanted_.push_back(static_cast<int32_t>(run.end() - run.wanted + i));
      logits_to_.push_back(run.logits == nullptr ? nullptr : run.logits + i * config_.vocab);
    }
  }
}

void CstLmPass::HoldSnapshots() {
  for (size_t i = 0; i < layout_.runs.size(); ++i) {
    const TokenRun& run = layout_.runs[i];
    if (!run.sequence->restored()) continue;
    const kernels::CacheSequence& held = held_.emplace_back(run.sequence->cache().Fork());
    const kernels::BlockList& list = held.blocks(kCstSnapshots);
    const int64_t slot = run.start / CstGranule(config_) - 1;
    const auto block = static_cast<size_t>(slot / kernels::kBlockSlots - list.first);
    restored_[i] = {list.blocks[block], static_cast<int32_t>(slot % kernels::kBlockSlots)};
  }
}

absl::Status CstLmPass::Append() {
  restored_.assign(layout_.runs.size(), kernels::CachePlace());
  HoldSnapshots();
  step_.emplace(frame_.cache);
  if (absl::Status status = AppendRuns(layout_.runs, *step_); !status.ok()) return status;
  for (const TokenRun& run : layout_.runs) run.sequence->set_read();
  return absl::OkStatus();
}

void CstLmPass::End() {
  step_->End();
  held_.clear();
}

void CstLmPass::StageCache(Ops& ops) {
  const kernels::CacheStep* const step = step_ ? &*step_ : nullptr;
  snapshots_.assign(static_cast<size_t>(layout_.closings), kernels::CachePlace());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const CstGroup& layout = layout_.groups[g];
    Group& group = groups_[g];
    group.tokens = ops.Stage(layout.tokens);
    group.slices = ops.Stage(layout.slices);
    group.window.List(step, shape_, kCstWindow, layout, layout_.runs);
    group.window.Stage(ops, frame_.cache);
    group.pages.List(step, shape_, kCstSlices, layout, layout_.runs);
    group.pages.Stage(ops, frame_.cache);
    if (step == nullptr) continue;
    auto place = step->places(layout.group, kCstSnapshots).begin();
    for (int32_t s = layout.closing0; s < layout.closing0 + layout.closings; ++s) {
      const auto slice = static_cast<size_t>(s);
      if (layout_.snapshots[slice]) snapshots_[slice] = *place++;
    }
  }
  restored_.resize(layout_.runs.size());
  snapshots_ref_ = ops.StagePlaces(frame_.cache, snapshots_);
  restored_ref_ = ops.StagePlaces(frame_.cache, restored_);
}

StatesRef CstLmPass::StageUses(Ops& ops, std::span<const CstStateUse> uses,
                               std::vector<kernels::StateRow>& rows) const {
  rows.clear();
  for (const CstStateUse& use : uses) {
    kernels::StateRow& row = rows.emplace_back(kernels::StateRow{nullptr, use.row});
    if (!step_) continue;
    const TokenRun& run = layout_.runs[static_cast<size_t>(use.run)];
    const CstState state(*frame_.cache, run.sequence->cache());
    row.state = (use.global ? state.global : state.slice) + use.offset;
  }
  return ops.Stage(std::span<const kernels::StateRow>(rows));
}

void CstLmPass::StageStates(Ops& ops) {
  sums_in_ref_ = StageUses(ops, layout_.sums_in, sums_in_);
  sums_out_ref_ = StageUses(ops, layout_.sums_out, sums_out_);
  globals_in_ref_ = StageUses(ops, layout_.globals_in, globals_in_);
  globals_out_ref_ = StageUses(ops, layout_.globals_out, globals_out_);
}

void CstLmPass::Stage(Ops& ops) {
  ids_ref_ = ops.Stage(layout_.ids);
  positions_ref_ = ops.Stage(layout_.positions);
  kinds_ref_ = ops.Stage(layout_.kinds);
  entries_ref_ = ops.Stage(layout_.token_entries);
  globals_ref_ = ops.Stage(layout_.globals);
  pooled_places_ref_ = ops.Stage(layout_.pooled_places);
  slice_entries_ref_ = ops.Stage(layout_.slice_entries);
  wanted_ref_ = ops.Stage(wanted_);
  cutoffs_ref_ = ops.Stage(cutoffs_);
  parts_ref_ = ops.Stage(std::span<const kernels::SlicePart>(layout_.parts));
  StageCache(ops);
  StageStates(ops);
}

void CstLmPass::Take(Ops& ops) {
  using enum RowType;
  using enum Ops::Tail;
  const int64_t rows = layout_.rows(), closings = layout_.closings;
  x_ = ops.Take(rows, width(), kFloat, kPanel);
  input_ = ops.TakeInput(x_, config_.norms);
  kept_ = ops.TakeKept(x_, layout_.wanted);
  kept_input_ = input_.data == x_.data ? kept_ : input_.First(layout_.wanted);
  if (projects_embeddings()) {
    embeddings_ = ops.Take(rows, config_.embedding_width, kFloat);
    embedded_ = ops.Take(rows, config_.embedding_width, kCompute, kPanel);
  }
  qkv_ = ops.Take(rows, 3 * width(), kCompute, kWritten);
  z_ = ops.Take(rows, width(), kCompute, kPanel);
  kept_z_ = ops.TakeKept(z_, layout_.wanted);
  if (pools_linearly()) {
    slice_tokens_ = ops.Take(closings, config_.slice * width(), kCompute, kPanel);
  } else {
    sums_ = ops.Take(static_cast<int64_t>(layout_.parts.size()), width(), kFloat, kPanel);
  }
  const bool floats = ops.compute() == Compute::kFp32 && !pools_linearly();
  slice_input_ = floats ? sums_.First(closings) : ops.Take(closings, width(), kCompute, kPanel);
  slice_qkv_ = ops.Take(closings, 3 * width(), kCompute, kWritten);
  globals_ = ops.Take(layout_.global_rows(), width(), kCompute);
  logits_ = ops.TakeDelivered(std::min(layout_.wanted, logit_rows_), config_.vocab);
}

void CstLmPass::Embed(Ops& ops) {
  EmbedArgs args;
  args.words = &weights_.words;
  if (weights_.positions) args.positions = &weights_.positions;
  if (weights_.types) args.types = &weights_.types;
  args.ids = ids_ref_;
  args.places = positions_ref_;
  args.kinds = kinds_ref_;
  args.factor = config_.embedding_scale;
  if (config_.embedding_norm) args.norm = &weights_.embedding_norm;
  args.x = projects_embeddings() ? embeddings_ : x_;
  if (projects_embeddings()) args.input = embedded_;
  ops.Embed(args);
  if (projects_embeddings()) ops.Project(weights_.embedding_project, embedded_, x_);
  if (pre_norm()) {
    ops.Residual(x_, {}, &weights_.layers[0].attention_norm, NormPlace::kPre, input_);
  } else if (input_.data != x_.data) {
    ops.Narrow(x_, input_);
  }
}

void CstLmPass::AttendGroup(Ops& ops, const CstLayer& layer, int index) const {
  const Group& group = groups_[static_cast<size_t>(index)];
  const CstGroup& layout = layout_.groups[static_cast<size_t>(index)];
  if (layout.runs == 0) return;
  // Zero tokens first, then positions in order: blocks are older than the pass's rows.
  std::vector<kernels::Source> sources;
  if (layer.boundary_keys.rows() > 0) sources.push_back(CstBoundary(config_, layer));
  sources.push_back(ops.CachedSource(Strip(kCstWindow), group.window.blocks()));
  if (layout.group == kernels::CacheStep::kPrefill) {
    sources.push_back(HeadsSource(ops.compute(), qkv_.Columns(width(), width()),
                                  qkv_.Columns(2 * width(), width()), config_.heads));
  }
  const kernels::Table places = CstKeyPlaces(config_, layer);
  kernels::Call call = HeadsCall(ops.compute(), qkv_.Columns(0, width()), z_, config_.heads);
  call.sources = sources;
  if (config_.relative_keys()) call.tables = {&places, 1};
  ops.Attend(group.tokens, call);
}

// Chunks of prefill read the cache before any of their rows is written to it.
void CstLmPass::AttendTokens(Ops& ops, const CstLayer& layer, const Rows& from) {
  ops.ProjectPlaces(layer.token_project, &layer.token_bias, entries_ref_, from, qkv_);
  AttendGroup(ops, layer, 0);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const CstGroup& layout = layout_.groups[g];
    if (layout.runs == 0) continue;
    const Rows rows = qkv_.From(layout.row0).First(layout.rows);
    ops.Store(Strip(kCstWindow), rows.Columns(width(), width()), rows.Columns(2 * width(), width()),
              groups_[g].window.places());
  }
  AttendGroup(ops, layer, 1);
  AttendGroup(ops, layer, 2);
}

// Slices that end are pooled to a row each, those that stay open to their sequences' states.
Rows CstLmPass::PoolSlices(Ops& ops, const CstLayer& layer, const Rows& from) const {
  if (pools_linearly()) {
    const Rows tokens = slice_tokens_.Split(config_.slice);
    ops.LoadStates(sums_in_ref_, shift_, tokens);
    ops.Scatter(from, pooled_places_ref_, tokens);
    ops.StoreStates(from, sums_out_ref_, shift_);
    if (layout_.closings > 0) ops.Project(layer.pool, slice_tokens_, slice_input_);
    return slice_input_;
  }
  const bool largest = config_.slice_pooling == CstPooling::kMax;
  ops.LoadStates(sums_in_ref_, shift_, sums_);
  ops.PoolParts(from, parts_ref_,
                largest ? kernels::SlicePooling::kMax : kernels::SlicePooling::kMean, sums_);
  ops.StoreStates(sums_, sums_out_ref_, shift_);
  if (layout_.closings > 0 && slice_input_.data != sums_.data) {
    ops.Narrow(sums_.First(layout_.closings), slice_input_);
  }
  return slice_input_;
}

void CstLmPass::AttendSlices(Ops& ops, const CstLayer& layer, const Rows& from) {
  ops.LoadStates(globals_in_ref_, shift_, globals_);
  if (!held_.empty()) {
    ops.Load(Strip(kCstSnapshots), restored_ref_, globals_.From(layout_.closings));
  }
  const Rows slices = PoolSlices(ops, layer, from);
  if (layout_.closings == 0) return;
  ops.ProjectPlaces(layer.slice_project(), &layer.slice_bias, slice_entries_ref_, slices,
                    slice_qkv_);
  const auto ForGroups = [&](auto&& use) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (layout_.groups[g].closings > 0) use(layout_.groups[g], groups_[g]);
    }
  };
  ForGroups([&](const CstGroup& layout, const Group& group) {
    const Rows rows = slice_qkv_.From(layout.closing0).First(layout.closings);
    ops.Store(Strip(kCstSlices), rows.Columns(width(), width()), rows.Columns(2 * width(), width()),
              group.pages.places());
  });
  const Rows outputs = globals_.First(layout_.closings);
  ForGroups([&](const CstGroup&, const Group& group) {
    const kernels::Source pages[] = {ops.CachedSource(Strip(kCstSlices), group.pages.blocks())};
    kernels::Call call =
        HeadsCall(ops.compute(), slice_qkv_.Columns(0, width()), outputs, config_.heads);
    call.sources = pages;
    ops.Attend(group.slices, call);
  });
  ops.Store(Strip(kCstSnapshots), outputs, outputs, snapshots_ref_);
}

void CstLmPass::AddSlices(Ops& ops, const Rows& from) const {
  ops.AddRows(from, globals_, globals_ref_, z_);
}

void CstLmPass::Finish(Ops& ops, int layer) {
  const bool last = layer + 1 == config_.layers;
  const BlockWeights block = CstBlock(config_, weights_, layer);
  if (!last) return ops.FeedForward(block, {x_, input_, z_});
  if (layout_.wanted == 0) return;
  ops.Keep(x_, wanted_ref_, kept_);
  ops.Keep(z_, wanted_ref_, kept_z_);
  ops.FeedForward(block, {kept_, kept_input_, kept_z_});
}

void CstLmPass::Layer(Ops& ops, int layer) {
  const CstLayer& own = weights_.layers[static_cast<size_t>(layer)];
  layer_ = layer;
  shift_ = kernels::cuda::StateShift(shape_, layer);
  switch (config_.order) {
    case CstOrder::kComposition:
      AttendTokens(ops, own, input_);
      AttendSlices(ops, own, z_);
      break;
    case CstOrder::kParallel:
      AttendSlices(ops, own, input_);
      AttendTokens(ops, own, input_);
      break;
    case CstOrder::kGlobalFirst:
      AttendSlices(ops, own, input_);
      AddSlices(ops, input_);
      AttendTokens(ops, own, z_);
      break;
  }
  AddSlices(ops, z_);
  ops.StoreStates(globals_, globals_out_ref_, shift_);
  Finish(ops, layer);
}

Rows CstLmPass::Logits(Ops& ops, int64_t first, int64_t count) {
  const Rows x = kept_.From(first).First(count), input = kept_z_.From(first).First(count);
  if (config_.final_norm) {
    ops.Residual(x, {}, &weights_.norm, NormPlace::kPre, input);
  } else {
    ops.Narrow(x, input);
  }
  const Rows out = logits_.First(count);
  const std::span<float* const> to = std::span(logits_to_).subspan(static_cast<size_t>(first));
  if (cutoffs_.empty()) {
    ops.Deliver(weights_.logits, input, out, to);
  } else {
    ops.DeliverAdaptive(weights_.logits, cutoffs_ref_, input, out, to);
  }
  return out;
}

}  // namespace longview::models
