#include "models/luna/pass.h"

#include "models/ops/attend.h"
#include "models/ops/embed.h"
#include "models/ops/feed_forward.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"
#include "models/ops/residual.h"

namespace longview::models {

LunaPass::LunaPass(const LunaConfig& config, const LunaWeights& weights, Compute compute,
                   Sequences sequences, int tile_rows)
    : config_(config),
      weights_(weights),
      compute_(compute),
      tile_rows_(tile_rows),
      batch_(sequences),
      plan_(PlanLuna(config, batch_, tile_rows)) {}

void LunaPass::Stage(Backend& backend) {
  ids_.clear();
  places_.clear();
  entering_.clear();
  for (int s = 0; s < batch_.size(); ++s) {
    const EncoderSequence& sequence = *batch_.sequences()[s];
    ids_.insert(ids_.end(), sequence.ids.begin(), sequence.ids.end());
    places_.insert(places_.end(), sequence.positions.begin(), sequence.positions.end());
    for (int64_t row = 0; row < ExtraRows(s); ++row) entering_.push_back(static_cast<int32_t>(row));
  }
  pack_ = backend.Stage(plan_.pack);
  unpack_ = backend.Stage(plan_.unpack);
  unpack_wanted_ = backend.Stage(plan_.unpack_wanted);
  ids_ref_ = backend.Stage(ids_);
  places_ref_ = backend.Stage(places_);
  entering_ref_ = backend.Stage(entering_);
  wanted_ref_ = backend.Stage(plan_.wanted_rows);
}

void LunaPass::Take(Backend& backend) {
  using enum RowType;
  using enum Backend::Tail;
  const int64_t tokens = batch_.rows(), projected = plan_.projected_rows();
  x_ = backend.Take(tokens, width(), kFloat, kPanel);
  input_ = backend.TakeInput(x_, config_.norms);
  kept_ = backend.TakeKept(x_, plan_.wanted());
  kept_input_ = input_.data == x_.data ? kept_ : input_;
  projections_ = backend.Take(tokens, parts() * width(), kCompute, kPanel);
  queries_ = backend.Take(plan_.wanted(), width(), kCompute);
  z_ = backend.Take(tokens, width(), kCompute, kPanel);
  p_ = backend.Take(projected, width(), kFloat, kPanel);
  p_input_ = backend.TakeInput(p_, config_.norms);
  pack_queries_ = backend.Take(projected, width(), kCompute, kPanel);
  packed_ = backend.Take(projected, width(), kCompute, kPanel);
  unpack_keys_ = backend.Take(projected, (parts() - 1) * width(), kCompute, kPanel);
}

Rows LunaPass::Extra() const {
  return ReadsProjected(config_) ? p_.First(plan_.projected_rows()) : Rows{};
}

// Rows of tokens and of P move to the front, each in their own tensors.
void LunaPass::LeaveDropped(int layer) {
  const std::vector<int32_t> projected = plan_.projected_offsets;
  int64_t to_projected = 0;
  batch_.Leave([&](RaggedBatch::Place from, RaggedBatch::Place to, int64_t rows) {
    const int64_t count = projected[from.index + 1] - projected[from.index];
    if (layer > 0) {
      MoveRows(x_, from.row, to.row, rows);
      MoveRows(p_, projected[from.index], to_projected, count);
      if (input_.data != x_.data) {
        MoveRows(input_, from.row, to.row, rows);
        MoveRows(p_input_, projected[from.index], to_projected, count);
      }
    }
    to_projected += count;
  });
  plan_ = PlanLuna(config_, batch_, tile_rows_);
}

void LunaPass::Embed(Backend& backend) {
  const Rows x = x_.First(batch_.rows()), p = p_.First(plan_.projected_rows());
  const Rows input = input_.First(x.count), p_input = p_input_.First(p.count);
  const bool own_input = input.data != x.data;
  ops::Embed args;
  args.words = &weights_.words;
  if (weights_.positions) args.positions = &weights_.positions;
  args.ids = ids_ref_;
  args.places = places_ref_;
  args.factor = config_.embed_scale;
  if (config_.embedding_norm) args.norm = &weights_.embedding_norm;
  args.x = x;
  if (own_input && !pre_norm()) args.input = input;
  backend.Run(args);
  backend.Run(ops::LookUp{weights_.projected, entering_ref_, p});
  const LunaLayer& first = weights_.layer(0);
  if (pre_norm()) {
    backend.Run(ops::Residual{x, {}, &first.attention_norm, NormPlace::kPre, input});
    backend.Run(ops::Residual{p, {}, &first.projected_norm, NormPlace::kPre, p_input});
  } else if (own_input) {
    backend.Run(ops::Narrow{p, p_input});
  }
}

kernels::Source LunaPass::KeysAndValues(const Rows& rows, int heads) const {
  const Rows keys = rows.Columns(0, width());
  return HeadsSource(compute_, keys, config_.tied_kv ? keys : rows.Columns(width(), width()),
                     heads);
}

// packed = Y_P, and the unpack's query of every token beside the pack's key and value.
void LunaPass::Pack(Backend& backend, const LunaLayer& layer) {
  const int64_t tokens = batch_.rows(), projected = plan_.projected_rows();
  backend.Run(ops::Project{layer.project, input_.First(tokens), projections_});
  backend.Run(ops::Project{layer.pack_query, p_input_.First(projected), pack_queries_});
  const kernels::Source keys[] = {
      KeysAndValues(projections_.Columns(width(), (parts() - 1) * width()), config_.pack_heads)};
  kernels::Call call = HeadsCall(compute_, pack_queries_, packed_, config_.pack_heads);
  call.sources = keys;
  backend.Run(ops::Attend{pack_, call});
  backend.Run(ops::Project{layer.unpack, packed_.First(projected), unpack_keys_});
}

void LunaPass::Unpack(Backend& backend, const LunaLayer&, bool last) {
  Rows queries = projections_.Columns(0, width());
  if (last) {
    backend.Run(ops::Gather{queries, wanted_ref_, queries_});
    queries = queries_;
  }
  const kernels::Source keys[] = {KeysAndValues(unpack_keys_, config_.heads)};
  kernels::Call call = HeadsCall(compute_, queries, z_, config_.heads);
  call.sources = keys;
  backend.Run(ops::Attend{last ? unpack_wanted_ : unpack_, call});
}

// p takes the packed context as it is: no output projection, no feed-forward.
void LunaPass::UpdateProjected(Backend& backend, int layer) {
  const int64_t projected = plan_.projected_rows();
  const Rows p = p_.First(projected), packed = packed_.First(projected);
  const Rows out = last(layer) ? Rows{} : p_input_.First(projected);
  if (!pre_norm()) {
    backend.Run(
        ops::Residual{p, packed, &weights_.layer(layer).projected_norm, NormPlace::kPost, out});
  } else if (!last(layer)) {
    backend.Run(
        ops::Residual{p, packed, &weights_.layer(layer + 1).projected_norm, NormPlace::kPre, out});
  } else {
    backend.Run(ops::Residual{p, packed, nullptr, NormPlace::kPost, {}});
    backend.Run(ops::Residual{p, {}, &weights_.final_projected_norm, NormPlace::kPost, {}});
  }
}

void LunaPass::Finish(Backend& backend, int layer) {
  const LunaLayer& own = weights_.layer(layer);
  BlockWeights block;
  block.out = &own.out;
  block.after_attention = pre_norm() ? &own.output_norm : &own.attention_norm;
  block.expand = &own.expand;
  block.contract = &own.contract;
  block.after_layer = &own.output_norm;
  if (pre_norm()) {
    block.after_layer = last(layer) ? nullptr : &weights_.layer(layer + 1).attention_norm;
    block.last = last(layer) ? &weights_.final_norm : nullptr;
  }
  block.activation = config_.activation;
  block.norms = config_.norms;
  if (!last(layer)) {
    const int64_t tokens = batch_.rows();
    return backend.Run(
        ops::FeedForward{block, {x_.First(tokens), input_.First(tokens), z_.First(tokens)}});
  }
  const int64_t wanted = plan_.wanted();
  backend.Run(ops::Keep{x_, wanted_ref_, kept_});
  backend.Run(
      ops::FeedForward{block, {kept_.First(wanted), kept_input_.First(wanted), z_.First(wanted)}});
}

void LunaPass::Layer(Backend& backend, int layer) {
  const LunaLayer& own = weights_.layer(layer);
  Pack(backend, own);
  Unpack(backend, own, last(layer));
  UpdateProjected(backend, layer);
  Finish(backend, layer);
}

}  // namespace longview::models
