#include "models/longformer/layer.h"

#include "models/ops/attend.h"
#include "models/ops/feed_forward.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"

#include <algorithm>

namespace longview::models {

void StageLayer(Backend& backend, std::span<const uint8_t> roles, StagedLayer& layer) {
  layer.folded_row_list.clear();
  layer.folded_out_list.clear();
  layer.unfolded_row_list.clear();
  layer.fold_groups.clear();
  for (const GlobalRow& global : layer.host.folded) {
    layer.folded_row_list.push_back(global.row);
    layer.folded_out_list.push_back(global.out);
  }
  for (const GlobalRow& global : layer.host.unfolded) {
    layer.unfolded_row_list.push_back(global.row);
  }
  for (const GlobalGroup& group : layer.host.folded_groups) {
    layer.fold_groups.push_back({group.row0, group.tokens, group.first, group.count});
  }
  layer.pieces.clear();
  for (const LayerPiece& piece : layer.host.pieces) {
    layer.pieces.push_back({backend.Stage(piece.band), backend.Stage(piece.cut_globals),
                            backend.Stage(piece.carried), backend.Stage(piece.folded.places),
                            backend.Stage(piece.unfolded.places)});
  }
  layer.full = backend.Stage(layer.host.full);
  layer.local_rows = backend.Stage(layer.host.local_rows);
  layer.query_rows = backend.Stage(layer.host.query_rows);
  layer.out_rows = backend.Stage(layer.host.out_rows);
  layer.unfolded_rows = backend.Stage(layer.unfolded_row_list);
  layer.folds =
      StageFolds(backend, layer.fold_groups, layer.folded_row_list, layer.folded_out_list, roles);
}

void TakeGlobalRows(Backend& backend, const LongformerConfig& config,
                    std::span<const StagedLayer* const> layers, LongformerRows& rows) {
  int64_t folded = 0, globals = 0, keys = 0;
  for (const StagedLayer* layer : layers) {
    folded = std::max(folded, static_cast<int64_t>(layer->host.folded.size()));
    globals = std::max(globals, static_cast<int64_t>(layer->host.unfolded.size()));
    keys = std::max(keys, layer->host.global_key_rows);
  }
  using enum RowType;
  using enum Backend::Tail;
  if (folded > 0) rows.folded_out = backend.Take(folded, config.width, kCompute);
  if (globals == 0) return;
  rows.global_inputs = backend.Take(globals, config.width, kCompute, kPanel);
  rows.global_queries = backend.Take(globals, config.width, kCompute, kPanel);
  rows.global_out = backend.Take(globals, config.width, kCompute);
  if (keys > 0) rows.global_keys = backend.Take(keys, 2 * int64_t{config.width}, kCompute, kPanel);
}

void LongformerLayerRun::Project(Backend& backend, const Rows& input, const Rows& qkv) const {
  backend.Run(ops::Project{weights_.qkv, input, qkv});
}

void LongformerLayerRun::ProjectGlobalKeys(Backend& backend, int64_t row0, int64_t tokens,
                                           int64_t key_row0) const {
  backend.Run(ops::Project{weights_.key_value_global, rows_.input.From(row0).First(tokens),
                           rows_.global_keys.From(key_row0).First(tokens)});
}

void LongformerLayerRun::AttendLocal(Backend& backend, const PlanRef& band,
                                     const Rows& queries) const {
  const std::vector<kernels::Source> sources(
      band.plan->sources.size(),
      HeadsSource(compute_, rows_.qkv.Columns(width(), width()),
                  rows_.qkv.Columns(2 * width(), width()), config_.heads));
  kernels::Call call = HeadsCall(compute_, queries, rows_.z, config_.heads);
  call.sources = sources;
  backend.Run(ops::Attend{band, call});
}

void LongformerLayerRun::AttendGlobal(Backend& backend, const StagedLayer& plan) const {
  if (!plan.host.folded.empty()) {
    backend.Run(ops::AttendFolded{plan.folds, config_.heads, weights_.query_global,
                                  weights_.key_value_global, weights_.key_global,
                                  weights_.value_global, rows_.x, rows_.input, rows_.folded_out});
  }
  AttendUnfolded(backend, plan);
}

void LongformerLayerRun::PlaceGlobal(Backend& backend, const LayerPiece& piece,
                                     const StagedPiece& staged) const {
  if (staged.folded_places.count > 0) {
    backend.Run(
        ops::Scatter{rows_.folded_out.From(piece.folded.first), staged.folded_places, rows_.z});
  }
  if (staged.unfolded_places.count > 0) {
    backend.Run(
        ops::Scatter{rows_.global_out.From(piece.unfolded.first), staged.unfolded_places, rows_.z});
  }
}

void LongformerLayerRun::AttendUnfolded(Backend& backend, const StagedLayer& plan) const {
  const int64_t count = plan.unfolded_rows.count;
  if (count == 0) return;
  const Rows inputs = rows_.global_inputs.First(count);
  const Rows queries = rows_.global_queries.First(count), out = rows_.global_out.First(count);
  backend.Run(ops::Gather{rows_.input, plan.unfolded_rows, inputs});
  backend.Run(ops::Project{weights_.query_global, inputs, queries});
  // A panel's tail runs into the next group's keys, which come later.
  for (const GlobalGroup& group : plan.host.unfolded_groups) {
    ProjectGlobalKeys(backend, group.row0, group.tokens, group.key_row0);
  }
  const kernels::Source keys[] = {HeadsSource(compute_, rows_.global_keys.Columns(0, width()),
                                              rows_.global_keys.Columns(width(), width()),
                                              config_.heads)};
  kernels::Call call = HeadsCall(compute_, queries, out, config_.heads);
  call.sources = keys;
  backend.Run(ops::Attend{plan.full, call});
}

void LongformerLayerRun::Finish(Backend& backend, const Rows& x, const Rows& input,
                                const Rows& z) const {
  BlockWeights block;
  block.out = &weights_.out;
  block.after_attention = &weights_.attention_norm;
  block.expand = &weights_.expand;
  block.contract = &weights_.contract;
  block.after_layer = &weights_.output_norm;
  block.activation = config_.activation;
  backend.Run(ops::FeedForward{block, {x, input, z}});
}

}  // namespace longview::models
