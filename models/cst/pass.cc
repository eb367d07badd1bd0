#include "models/cst/pass.h"

#include <algorithm>

#include "kernels/span/band_planner.h"
#include "models/cst/layer_parts.h"
#include "models/cst/pool_slices.h"
#include "models/ops/attend.h"
#include "models/ops/embed.h"
#include "models/ops/feed_forward.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"
#include "models/ops/residual.h"

namespace longview::models {

CstPass::CstPass(const CstConfig& config, const CstWeights& weights, Compute compute,
                 Sequences sequences, int tile_rows)
    : config_(config),
      weights_(weights),
      compute_(compute),
      tile_rows_(tile_rows),
      batch_(sequences) {
  MakePlan();
}

void CstPass::MakePlan() {
  plan_ = PlanCst(config_, batch_, tile_rows_);
  wanted_offsets_ = {0};
  for (const EncoderSequence* sequence : batch_.sequences()) {
    wanted_offsets_.push_back(wanted_offsets_.back() +
                              static_cast<int64_t>(sequence->wanted.size()));
  }
}

void CstPass::ListRows() {
  for (std::vector<int32_t>* list : {&ids_, &places_, &kinds_, &token_entries_, &wanted_rows_,
                                     &slice_entries_, &pooled_places_, &pool_entries_}) {
    list->clear();
  }
  for (int s = 0; s < batch_.size(); ++s) {
    const EncoderSequence& sequence = *batch_.sequences()[s];
    ids_.insert(ids_.end(), sequence.ids.begin(), sequence.ids.end());
    places_.insert(places_.end(), sequence.positions.begin(), sequence.positions.end());
    kinds_.insert(kinds_.end(), sequence.types.begin(), sequence.types.end());
    kinds_.resize(ids_.size());
    for (const int32_t token : sequence.wanted) wanted_rows_.push_back(batch_.offsets()[s] + token);
  }
  const int64_t places = config_.multi_scale() ? config_.slice : 1;
  for (int64_t row = 0; attends() && row < rows(); ++row) {
    token_entries_.push_back(static_cast<int32_t>(std::min(plan_.PlaceOf(row), places - 1)));
  }
  const int32_t numbers = config_.multi_scale() ? config_.most_slices() : 1;
  for (const int32_t number : plan_.slice_numbers) {
    slice_entries_.push_back(std::min(number, numbers - 1));
  }
  if (!pools_linearly()) return;
  for (const kernels::SliceRows& slice : plan_.slice_list) {
    pool_entries_.push_back(slice.visible > 0 ? 0 : -1);
  }
  for (int64_t row = 0; row < rows(); ++row) {
    const int64_t slice = plan_.slice_of_row[static_cast<size_t>(row)];
    const bool masked = batch_.roles()[static_cast<size_t>(row)] == kernels::kMaskedToken;
    const int64_t place = slice * config_.slice + plan_.PlaceOf(row);
    pooled_places_.push_back(slice < 0 || masked ? -1 : static_cast<int32_t>(place));
  }
}

void CstPass::Stage(Backend& backend) {
  ListRows();
  token_plan_ = backend.Stage(plan_.tokens);
  slice_plan_ = backend.Stage(plan_.slices);
  slices_ref_ = StageSlices(backend, plan_.slice_list, batch_.roles());
  slice_of_row_ref_ = backend.Stage(plan_.slice_of_row);
  ids_ref_ = backend.Stage(ids_);
  places_ref_ = backend.Stage(places_);
  kinds_ref_ = backend.Stage(kinds_);
  token_entries_ref_ = backend.Stage(token_entries_);
  slice_entries_ref_ = backend.Stage(slice_entries_);
  wanted_ref_ = backend.Stage(wanted_rows_);
  pooled_places_ref_ = backend.Stage(pooled_places_);
  pool_entries_ref_ = backend.Stage(pool_entries_);
}

void CstPass::Take(Backend& backend) {
  using enum RowType;
  using enum Backend::Tail;
  x_ = backend.Take(rows(), width(), kFloat, kPanel);
  input_ = backend.TakeInput(x_, config_.norms);
  kept_ = backend.TakeKept(x_, wanted());
  kept_input_ = input_.data == x_.data ? kept_ : input_;
  if (projects_embeddings()) {
    sums_ = backend.Take(rows(), config_.embedding_width, kFloat);
    embedded_ = backend.Take(rows(), config_.embedding_width, kCompute, kPanel);
  }
  if (attends()) qkv_ = backend.Take(rows(), 3 * width(), kCompute, kPanel);
  z_ = backend.Take(rows(), width(), kCompute, kPanel);
  kept_z_ = backend.TakeKept(z_, wanted());
  slice_input_ = backend.Take(slices(), width(), kCompute, kPanel);
  if (pools_linearly()) {
    slice_tokens_ = backend.Take(slices(), config_.slice * width(), kCompute, kPanel);
  }
  slice_qkv_ = backend.Take(slices(), 3 * width(), kCompute, kPanel);
  slice_z_ = backend.Take(slices(), width(), kCompute);
}

void CstPass::LeaveDropped(int layer) {
  batch_.Leave([&](RaggedBatch::Place from, RaggedBatch::Place to, int64_t rows) {
    if (layer == 0) return;
    MoveRows(x_, from.row, to.row, rows);
    if (input_.data != x_.data) MoveRows(input_, from.row, to.row, rows);
  });
  MakePlan();
}

void CstPass::Embed(Backend& backend) {
  const Rows x = x_.First(rows()), input = input_.First(rows());
  const bool own_input = input.data != x.data;
  ops::Embed args;
  args.words = &weights_.words;
  if (weights_.positions) args.positions = &weights_.positions;
  if (weights_.types) args.types = &weights_.types;
  args.ids = ids_ref_;
  args.places = places_ref_;
  args.kinds = kinds_ref_;
  args.factor = config_.embedding_scale;
  if (config_.embedding_norm) args.norm = &weights_.embedding_norm;
  args.x = projects_embeddings() ? sums_.First(rows()) : x;
  if (projects_embeddings()) args.input = embedded_.First(rows());
  backend.Run(args);
  if (projects_embeddings()) {
    backend.Run(ops::Project{weights_.embedding_project, embedded_.First(rows()), x});
  }
  if (pre_norm()) {
    backend.Run(ops::Residual{x, {}, &weights_.layers[0].attention_norm, NormPlace::kPre, input});
  } else if (own_input) {
    backend.Run(ops::Narrow{x, input});
  }
}

kernels::Call CstPass::HeadsCallOf(const Rows& qkv, const Rows& out) const {
  return HeadsCall(compute_, qkv.Columns(0, width()), out, config_.heads);
}

kernels::Source CstPass::HeadsSourceOf(const Rows& qkv) const {
  return HeadsSource(compute_, qkv.Columns(width(), width()), qkv.Columns(2 * width(), width()),
                     config_.heads);
}

void CstPass::MixTokens(Backend& backend, const CstLayer& layer, const Rows& from) {
  if (!attends()) {
    return backend.Run(ops::MixSlices{layer.mixer, from, slices_ref_, z_.First(rows())});
  }
  backend.Run(ops::ProjectPlaces{layer.token_project, &layer.token_bias, token_entries_ref_, from,
                                 qkv_.First(rows())});
  std::vector<kernels::Source> sources = {HeadsSourceOf(qkv_)};
  if (layer.boundary_keys.rows() > 0) sources.push_back(CstBoundary(config_, layer));
  const kernels::Table places = CstKeyPlaces(config_, layer);
  kernels::Call call = HeadsCallOf(qkv_, z_);
  call.sources = sources;
  if (config_.relative_keys()) call.tables = {&places, 1};
  backend.Run(ops::Attend{token_plan_, call});
}

void CstPass::AttendSlices(Backend& backend, const CstLayer& layer, const Rows& from) {
  const Rows input = slice_input_.First(slices());
  if (pools_linearly()) {
    // A slice's tokens end to end through a linear; masked and absent ones are zeros, and a slice
    // without visible ones has not even the bias.
    const Rows tokens = slice_tokens_.First(slices());
    backend.Run(ops::Clear{tokens});
    backend.Run(ops::Scatter{from, pooled_places_ref_, tokens.Split(config_.slice)});
    backend.Run(ops::ProjectPlaces{layer.pool, nullptr, pool_entries_ref_, tokens, input});
  } else {
    const bool largest = config_.slice_pooling == CstPooling::kMax;
    backend.Run(ops::PoolSlices{
        from, slices_ref_, largest ? kernels::SlicePooling::kMax : kernels::SlicePooling::kMean,
        input});
  }
  backend.Run(ops::ProjectPlaces{layer.slice_project(), &layer.slice_bias, slice_entries_ref_,
                                 input, slice_qkv_.First(slices())});
  const kernels::Source sources[] = {HeadsSourceOf(slice_qkv_)};
  kernels::Call call = HeadsCallOf(slice_qkv_, slice_z_);
  call.sources = sources;
  backend.Run(ops::Attend{slice_plan_, call});
}

void CstPass::Attend(Backend& backend, const CstLayer& layer) {
  const Rows input = input_.First(rows()), z = z_.First(rows());
  const Rows added = slice_z_.First(slices());
  switch (config_.order) {
    case CstOrder::kComposition:
      MixTokens(backend, layer, input);
      AttendSlices(backend, layer, z);
      break;
    case CstOrder::kParallel:
      AttendSlices(backend, layer, input);
      MixTokens(backend, layer, input);
      break;
    case CstOrder::kGlobalFirst:
      AttendSlices(backend, layer, input);
      backend.Run(ops::AddRows{input, added, slice_of_row_ref_, z});
      MixTokens(backend, layer, z);
      break;
  }
  backend.Run(ops::AddRows{z, added, slice_of_row_ref_, z});
}

void CstPass::Finish(Backend& backend, int layer) {
  const bool last = layer + 1 == config_.layers;
  BlockWeights block = CstBlock(config_, weights_, layer);
  if (last && config_.final_norm) block.last = &weights_.norm;
  if (!last) {
    return backend.Run(
        ops::FeedForward{block, {x_.First(rows()), input_.First(rows()), z_.First(rows())}});
  }
  backend.Run(ops::Keep{x_, wanted_ref_, kept_});
  backend.Run(ops::Keep{z_, wanted_ref_, kept_z_});
  backend.Run(ops::FeedForward{
      block, {kept_.First(wanted()), kept_input_.First(wanted()), kept_z_.First(wanted())}});
}

void CstPass::Layer(Backend& backend, int layer) {
  Attend(backend, weights_.layers[static_cast<size_t>(layer)]);
  Finish(backend, layer);
}

}  // namespace longview::models
