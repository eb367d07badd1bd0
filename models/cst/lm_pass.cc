#include "models/cst/lm_pass.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/device_blocks.h"
#include "models/cst/layer_parts.h"
#include "models/cst/lm_cache.h"
#include "models/cst/pool_slices.h"
#include "models/ops/attend.h"
#include "models/ops/cache_rows.h"
#include "models/ops/deliver.h"
#include "models/ops/embed.h"
#include "models/ops/feed_forward.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"
#include "models/ops/residual.h"
#include "models/ops/states.h"
#include "models/status_macros.h"

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
    const int64_t slot = run.start / CstPrefillAlignment(config_) - 1;
    const auto block = static_cast<size_t>(slot / kernels::kBlockSlots - list.first);
    restored_[i] = {list.blocks[block], static_cast<int32_t>(slot % kernels::kBlockSlots)};
  }
}

absl::Status CstLmPass::Append() {
  restored_.assign(layout_.runs.size(), kernels::CachePlace());
  HoldSnapshots();
  step_.emplace(frame_.cache);
  RETURN_IF_ERROR(AppendRuns(layout_.runs, *step_));
  for (const TokenRun& run : layout_.runs) run.sequence->set_read();
  return absl::OkStatus();
}

void CstLmPass::End() {
  step_->End();
  held_.clear();
}

void CstLmPass::StageCache(Backend& backend) {
  const kernels::CacheStep* const step = step_ ? &*step_ : nullptr;
  snapshots_.assign(static_cast<size_t>(layout_.closings), kernels::CachePlace());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const CstGroup& layout = layout_.groups[g];
    Group& group = groups_[g];
    group.tokens = backend.Stage(layout.tokens);
    group.slices = backend.Stage(layout.slices);
    group.window.List(step, shape_, kCstWindow, layout, layout_.runs);
    group.window.Stage(backend, frame_.cache);
    group.pages.List(step, shape_, kCstSlices, layout, layout_.runs);
    group.pages.Stage(backend, frame_.cache);
    if (step == nullptr) continue;
    auto place = step->places(layout.group, kCstSnapshots).begin();
    for (int32_t s = layout.closing0; s < layout.closing0 + layout.closings; ++s) {
      const auto slice = static_cast<size_t>(s);
      if (layout_.snapshots[slice]) snapshots_[slice] = *place++;
    }
  }
  restored_.resize(layout_.runs.size());
  snapshots_ref_ = StagePlaces(backend, frame_.cache, snapshots_);
  restored_ref_ = StagePlaces(backend, frame_.cache, restored_);
}

StatesRef CstLmPass::StageUses(Backend& backend, std::span<const CstStateUse> uses,
                               std::vector<kernels::StateRow>& rows) const {
  rows.clear();
  for (const CstStateUse& use : uses) {
    kernels::StateRow& row = rows.emplace_back(kernels::StateRow{nullptr, use.row});
    if (!step_) continue;
    const TokenRun& run = layout_.runs[static_cast<size_t>(use.run)];
    const CstState state(*frame_.cache, run.sequence->cache());
    row.state = (use.global ? state.global : state.slice) + use.offset;
  }
  return models::StageStates(backend, rows);
}

void CstLmPass::StageStates(Backend& backend) {
  sums_in_ref_ = StageUses(backend, layout_.sums_in, sums_in_);
  sums_out_ref_ = StageUses(backend, layout_.sums_out, sums_out_);
  globals_in_ref_ = StageUses(backend, layout_.globals_in, globals_in_);
  globals_out_ref_ = StageUses(backend, layout_.globals_out, globals_out_);
}

void CstLmPass::Stage(Backend& backend) {
  ids_ref_ = backend.Stage(layout_.ids);
  positions_ref_ = backend.Stage(layout_.positions);
  kinds_ref_ = backend.Stage(layout_.kinds);
  entries_ref_ = backend.Stage(layout_.token_entries);
  globals_ref_ = backend.Stage(layout_.globals);
  pooled_places_ref_ = backend.Stage(layout_.pooled_places);
  slice_entries_ref_ = backend.Stage(layout_.slice_entries);
  wanted_ref_ = backend.Stage(wanted_);
  cutoffs_ref_ = backend.Stage(cutoffs_);
  parts_ref_ = StageParts(backend, layout_.parts);
  StageCache(backend);
  StageStates(backend);
}

void CstLmPass::Take(Backend& backend) {
  using enum RowType;
  using enum Backend::Tail;
  const int64_t rows = layout_.rows(), closings = layout_.closings;
  x_ = backend.Take(rows, width(), kFloat, kPanel);
  input_ = backend.TakeInput(x_, config_.norms);
  kept_ = backend.TakeKept(x_, layout_.wanted);
  kept_input_ = input_.data == x_.data ? kept_ : input_.First(layout_.wanted);
  if (projects_embeddings()) {
    embeddings_ = backend.Take(rows, config_.embedding_width, kFloat);
    embedded_ = backend.Take(rows, config_.embedding_width, kCompute, kPanel);
  }
  qkv_ = backend.Take(rows, 3 * width(), kCompute, kWritten);
  z_ = backend.Take(rows, width(), kCompute, kPanel);
  kept_z_ = backend.TakeKept(z_, layout_.wanted);
  if (pools_linearly()) {
    slice_tokens_ = backend.Take(closings, config_.slice * width(), kCompute, kPanel);
  } else {
    sums_ = backend.Take(static_cast<int64_t>(layout_.parts.size()), width(), kFloat, kPanel);
  }
  const bool floats = backend.compute() == Compute::kFp32 && !pools_linearly();
  slice_input_ = floats ? sums_.First(closings) : backend.Take(closings, width(), kCompute, kPanel);
  slice_qkv_ = backend.Take(closings, 3 * width(), kCompute, kWritten);
  globals_ = backend.Take(layout_.global_rows(), width(), kCompute);
  logits_ = TakeDelivered(backend, std::min(layout_.wanted, logit_rows_), config_.vocab);
}

void CstLmPass::Embed(Backend& backend) {
  ops::Embed args;
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
  backend.Run(args);
  if (projects_embeddings()) backend.Run(ops::Project{weights_.embedding_project, embedded_, x_});
  if (pre_norm()) {
    backend.Run(ops::Residual{x_, {}, &weights_.layers[0].attention_norm, NormPlace::kPre, input_});
  } else if (input_.data != x_.data) {
    backend.Run(ops::Narrow{x_, input_});
  }
}

void CstLmPass::AttendGroup(Backend& backend, const CstLayer& layer, int index) const {
  const Group& group = groups_[static_cast<size_t>(index)];
  const CstGroup& layout = layout_.groups[static_cast<size_t>(index)];
  if (layout.runs == 0) return;
  // Zero tokens first, then positions in order: blocks are older than the pass's rows.
  std::vector<kernels::Source> sources;
  if (layer.boundary_keys.rows() > 0) sources.push_back(CstBoundary(config_, layer));
  sources.push_back(CachedSource(backend, Strip(kCstWindow), group.window.blocks()));
  if (layout.group == kernels::CacheStep::kPrefill) {
    sources.push_back(HeadsSource(backend.compute(), qkv_.Columns(width(), width()),
                                  qkv_.Columns(2 * width(), width()), config_.heads));
  }
  const kernels::Table places = CstKeyPlaces(config_, layer);
  kernels::Call call = HeadsCall(backend.compute(), qkv_.Columns(0, width()), z_, config_.heads);
  call.sources = sources;
  if (config_.relative_keys()) call.tables = {&places, 1};
  backend.Run(ops::Attend{group.tokens, call});
}

// Chunks of prefill read the cache before any of their rows is written to it.
void CstLmPass::AttendTokens(Backend& backend, const CstLayer& layer, const Rows& from) {
  backend.Run(ops::ProjectPlaces{layer.token_project, &layer.token_bias, entries_ref_, from, qkv_});
  AttendGroup(backend, layer, 0);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const CstGroup& layout = layout_.groups[g];
    if (layout.runs == 0) continue;
    const Rows rows = qkv_.From(layout.row0).First(layout.rows);
    backend.Run(ops::Store{Strip(kCstWindow), rows.Columns(width(), width()),
                           rows.Columns(2 * width(), width()), groups_[g].window.places()});
  }
  AttendGroup(backend, layer, 1);
  AttendGroup(backend, layer, 2);
}

// Slices that end are pooled to a row each, those that stay open to their sequences' states.
Rows CstLmPass::PoolSlices(Backend& backend, const CstLayer& layer, const Rows& from) const {
  if (pools_linearly()) {
    const Rows tokens = slice_tokens_.Split(config_.slice);
    backend.Run(ops::LoadStates{sums_in_ref_, shift_, tokens});
    backend.Run(ops::Scatter{from, pooled_places_ref_, tokens});
    backend.Run(ops::StoreStates{from, sums_out_ref_, shift_});
    if (layout_.closings > 0) backend.Run(ops::Project{layer.pool, slice_tokens_, slice_input_});
    return slice_input_;
  }
  const bool largest = config_.slice_pooling == CstPooling::kMax;
  backend.Run(ops::LoadStates{sums_in_ref_, shift_, sums_});
  backend.Run(ops::PoolParts{from, parts_ref_,
                             largest ? kernels::SlicePooling::kMax : kernels::SlicePooling::kMean,
                             sums_});
  backend.Run(ops::StoreStates{sums_, sums_out_ref_, shift_});
  if (layout_.closings > 0 && slice_input_.data != sums_.data) {
    backend.Run(ops::Narrow{sums_.First(layout_.closings), slice_input_});
  }
  return slice_input_;
}

void CstLmPass::AttendSlices(Backend& backend, const CstLayer& layer, const Rows& from) {
  backend.Run(ops::LoadStates{globals_in_ref_, shift_, globals_});
  if (!held_.empty()) {
    backend.Run(ops::Load{Strip(kCstSnapshots), restored_ref_, globals_.From(layout_.closings)});
  }
  const Rows slices = PoolSlices(backend, layer, from);
  if (layout_.closings == 0) return;
  backend.Run(ops::ProjectPlaces{layer.slice_project(), &layer.slice_bias, slice_entries_ref_,
                                 slices, slice_qkv_});
  const auto ForGroups = [&](auto&& use) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (layout_.groups[g].closings > 0) use(layout_.groups[g], groups_[g]);
    }
  };
  ForGroups([&](const CstGroup& layout, const Group& group) {
    const Rows rows = slice_qkv_.From(layout.closing0).First(layout.closings);
    backend.Run(ops::Store{Strip(kCstSlices), rows.Columns(width(), width()),
                           rows.Columns(2 * width(), width()), group.pages.places()});
  });
  const Rows outputs = globals_.First(layout_.closings);
  ForGroups([&](const CstGroup&, const Group& group) {
    const kernels::Source pages[] = {
        CachedSource(backend, Strip(kCstSlices), group.pages.blocks())};
    kernels::Call call =
        HeadsCall(backend.compute(), slice_qkv_.Columns(0, width()), outputs, config_.heads);
    call.sources = pages;
    backend.Run(ops::Attend{group.slices, call});
  });
  backend.Run(ops::Store{Strip(kCstSnapshots), outputs, outputs, snapshots_ref_});
}

void CstLmPass::AddSlices(Backend& backend, const Rows& from) const {
  backend.Run(ops::AddRows{from, globals_, globals_ref_, z_});
}

void CstLmPass::Finish(Backend& backend, int layer) {
  const bool last = layer + 1 == config_.layers;
  const BlockWeights block = CstBlock(config_, weights_, layer);
  if (!last) return backend.Run(ops::FeedForward{block, {x_, input_, z_}});
  if (layout_.wanted == 0) return;
  backend.Run(ops::Keep{x_, wanted_ref_, kept_});
  backend.Run(ops::Keep{z_, wanted_ref_, kept_z_});
  backend.Run(ops::FeedForward{block, {kept_, kept_input_, kept_z_}});
}

void CstLmPass::Layer(Backend& backend, int layer) {
  const CstLayer& own = weights_.layers[static_cast<size_t>(layer)];
  layer_ = layer;
  shift_ = kernels::cuda::StateShift(shape_, layer);
  switch (config_.order) {
    case CstOrder::kComposition:
      AttendTokens(backend, own, input_);
      AttendSlices(backend, own, z_);
      break;
    case CstOrder::kParallel:
      AttendSlices(backend, own, input_);
      AttendTokens(backend, own, input_);
      break;
    case CstOrder::kGlobalFirst:
      AttendSlices(backend, own, input_);
      AddSlices(backend, input_);
      AttendTokens(backend, own, z_);
      break;
  }
  AddSlices(backend, z_);
  backend.Run(ops::StoreStates{globals_, globals_out_ref_, shift_});
  Finish(backend, layer);
}

Rows CstLmPass::Logits(Backend& backend, int64_t first, int64_t count) {
  const Rows x = kept_.From(first).First(count), input = kept_z_.From(first).First(count);
  if (config_.final_norm) {
    backend.Run(ops::Residual{x, {}, &weights_.norm, NormPlace::kPre, input});
  } else {
    backend.Run(ops::Narrow{x, input});
  }
  const Rows out = logits_.First(count);
  const std::span<float* const> to = std::span(logits_to_).subspan(static_cast<size_t>(first));
  if (cutoffs_.empty()) {
    backend.Run(ops::Deliver{weights_.logits, input, out, to});
  } else {
    backend.Run(ops::DeliverAdaptive{weights_.logits, cutoffs_ref_, input, out, to});
  }
  return out;
}

}  // namespace longview::models
