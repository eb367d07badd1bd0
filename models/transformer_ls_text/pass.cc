#include "models/transformer_ls_text/pass.h"

#include "models/ops/attend.h"
#include "models/ops/embed.h"
#include "models/ops/feed_forward.h"
#include "models/ops/long_short.h"
#include "models/ops/move_rows.h"
#include "models/ops/residual.h"

#include <algorithm>

namespace longview::models {

LsTextPass::LsTextPass(const LsTextConfig& config, const LsTextWeights& weights, Compute compute,
                       Sequences sequences, int tile_rows)
    : config_(config),
      weights_(weights),
      compute_(compute),
      tile_rows_(tile_rows),
      batch_(sequences) {
  MakePlans();
}

void LsTextPass::MakePlans() {
  plans_.clear();
  for (int layer = 0; layer < config_.layers; ++layer) {
    const bool with_class = config_.HasClass(layer);
    if (plans_.contains(with_class)) continue;
    plans_[with_class].host = PlanLsText(config_, batch_, with_class, tile_rows_);
  }
  wanted_offsets_ = {0};
  for (const EncoderSequence* sequence : batch_.sequences()) {
    wanted_offsets_.push_back(wanted_offsets_.back() +
                              static_cast<int64_t>(sequence->wanted.size()));
  }
}

void LsTextPass::Stage(Backend& backend) {
  ids_.clear();
  places_.clear();
  kept_rows_.clear();
  for (int s = 0; s < batch_.size(); ++s) {
    const EncoderSequence& sequence = *batch_.sequences()[s];
    ids_.insert(ids_.end(), sequence.ids.begin(), sequence.ids.end());
    places_.insert(places_.end(), sequence.positions.begin(), sequence.positions.end());
    for (const int32_t token : sequence.wanted) kept_rows_.push_back(batch_.offsets()[s] + token);
  }
  if (class_token()) {
    ids_.resize(ids_.size() + static_cast<size_t>(class_rows()), config_.vocab - 1);
    places_.resize(ids_.size(), 0);
  }
  for (int64_t s = 0; s < class_rows(); ++s) {
    kept_rows_.push_back(static_cast<int32_t>(tokens() + s));
  }
  class_entries_.assign(static_cast<size_t>(class_rows()), 0);
  ids_ref_ = backend.Stage(ids_);
  places_ref_ = backend.Stage(places_);
  kept_ref_ = backend.Stage(kept_rows_);
  class_entries_ref_ = backend.Stage(class_entries_);
  segments_ = StageSegments(backend, batch_.offsets(), batch_.roles());
  for (auto& [with_class, plan] : plans_) {
    plan.tokens = backend.Stage(plan.host.tokens);
    plan.class_rows = backend.Stage(plan.host.class_rows);
  }
}

void LsTextPass::Take(Backend& backend) {
  using enum RowType;
  using enum Backend::Tail;
  const int64_t rows = tokens() + class_rows();
  int64_t projected = 0;
  for (const auto& [with_class, plan] : plans_) {
    projected = std::max(projected, plan.host.projected_rows());
  }
  x_ = backend.Take(rows, width(), kFloat, kPanel);
  input_ = backend.TakeInput(x_, NormPlace::kPre);
  parts_ = TakeLongShort(backend, rows, width(), config_.columns(), /*beside=*/false);
  landmarks_ = backend.Take(projected, 2 * width(), kCompute);
  z_ = backend.Take(rows, width(), kCompute, kPanel);
  kept_ = backend.TakeKept(x_, wanted() + class_rows());
  kept_z_ = backend.TakeKept(z_, wanted() + class_rows(), parts_.keys);
}

Rows LsTextPass::Extra() const {
  if (!has_class()) return {};
  Rows rows = kept_.First(class_rows());
  if (rows.data != nullptr) rows.data = kept_.Row(wanted());
  return rows;
}

void LsTextPass::LeaveDropped(int layer) {
  const int64_t old_class0 = tokens();
  // Class rows carried from earlier layers follow the tokens; where they start is known only when
  // all sequences have moved.
  const bool carried = layer > 0 && config_.HasClass(layer) && config_.HasClass(layer - 1);
  const auto move = [&](int64_t from, int64_t to, int64_t count) {
    MoveRows(x_, from, to, count);
    MoveRows(input_, from, to, count);
  };
  std::vector<int> stayed;
  batch_.Leave([&](RaggedBatch::Place from, RaggedBatch::Place to, int64_t rows) {
    stayed.push_back(from.index);
    if (layer > 0) move(from.row, to.row, rows);
  });
  for (size_t s = 0; carried && s < stayed.size(); ++s) {
    move(old_class0 + stayed[s], tokens() + static_cast<int64_t>(s), 1);
  }
  MakePlans();
}

void LsTextPass::Embed(Backend& backend) {
  ops::Embed args;
  args.words = &weights_.words;
  args.positions = &weights_.positions;
  args.ids = ids_ref_;
  args.places = places_ref_;
  args.x = x_.First(static_cast<int64_t>(ids_.size()));
  backend.Run(args);
  backend.Run(ops::Residual{
      args.x, {}, &weights_.layer(0).attention_norm, NormPlace::kPre, input_.First(args.x.count)});
}

// A learned class vector enters attention as it is; the class token is normalised like any token.
void LsTextPass::EnterClassRows(Backend& backend, int layer) {
  if (!config_.HasClass(layer) || class_token()) return;
  const auto behind = [&](Rows rows) {
    if (rows.data != nullptr) rows.data = rows.Row(tokens());
    return rows.First(class_rows());
  };
  const Rows x = behind(x_);
  if (layer == 0 || !config_.HasClass(layer - 1)) {
    backend.Run(ops::LookUp{weights_.class_vector, class_entries_ref_, x});
  }
  backend.Run(ops::Narrow{x, behind(input_)});
}

void LsTextPass::Attend(Backend& backend, const LsTextLayer& weights, const LayerPlan& plan) {
  ops::Landmarks landmarks;
  landmarks.segments = &segments_;
  landmarks.from = parts_;
  landmarks.heads = config_.heads;
  landmarks.rank = config_.rank;
  landmarks.norm = &weights.landmark_norm;
  landmarks.own_rows = plan.host.has_class;
  landmarks.out = landmarks_;
  backend.Run(landmarks);
  const auto source = [&](const Rows& keys, const Rows& values) {
    return HeadsSource(compute_, keys, values, config_.heads);
  };
  const kernels::Source for_tokens[] = {
      source(landmarks_.Columns(0, width()), landmarks_.Columns(width(), width())),
      source(parts_.keys, parts_.values)};
  kernels::Call call = HeadsCall(compute_, parts_.q, z_, config_.heads);
  call.sources = for_tokens;
  backend.Run(ops::Attend{plan.tokens, call});
  const kernels::Source for_class_rows[] = {source(parts_.own_keys, parts_.own_values),
                                            source(z_, z_)};
  call.sources = for_class_rows;
  backend.Run(ops::Attend{plan.class_rows, call});
}

void LsTextPass::Finish(Backend& backend, int layer, int64_t rows) {
  const LsTextLayer& own = weights_.layer(layer);
  const bool last = layer + 1 == config_.layers;
  BlockWeights block;
  block.out = &own.out;
  block.after_attention = &own.mlp_norm;
  block.expand = &own.expand;
  block.contract = &own.contract;
  block.after_layer = last ? nullptr : &weights_.layer(layer + 1).attention_norm;
  block.last = last ? &weights_.norm : nullptr;
  block.norms = NormPlace::kPre;
  if (!last)
    return backend.Run(
        ops::FeedForward{block, {x_.First(rows), input_.First(rows), z_.First(rows)}});
  const int64_t kept = kept_ref_.count;
  backend.Run(ops::Keep{x_, kept_ref_, kept_});
  backend.Run(ops::Keep{z_, kept_ref_, kept_z_});
  backend.Run(
      ops::FeedForward{block, {kept_.First(kept), input_.First(kept), kept_z_.First(kept)}});
}

void LsTextPass::Layer(Backend& backend, int layer) {
  const LsTextLayer& weights = weights_.layer(layer);
  const LayerPlan& plan = PlanOf(layer);
  EnterClassRows(backend, layer);
  backend.Run(ops::ProjectLongShort{weights.project, weights.token_norm,
                                    input_.First(plan.host.rows()), plan.host.token_rows, parts_});
  Attend(backend, weights, plan);
  Finish(backend, layer, plan.host.rows());
}

}  // namespace longview::models
