#include "models/transformer/pass.h"

#include "models/ops/attend.h"
#include "models/ops/embed.h"
#include "models/ops/feed_forward.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"
#include "models/ops/residual.h"

namespace longview::models {

TransformerPass::TransformerPass(const TransformerConfig& config, const TransformerWeights& weights,
                                 Compute compute, Sequences sequences, int tile_rows)
    : config_(config),
      weights_(weights),
      compute_(compute),
      tile_rows_(tile_rows),
      batch_(sequences),
      plan_(PlanTransformer(config, batch_, tile_rows)) {}

void TransformerPass::Stage(Backend& backend) {
  ids_.clear();
  places_.clear();
  kinds_.clear();
  for (const EncoderSequence* sequence : batch_.sequences()) {
    ids_.insert(ids_.end(), sequence->ids.begin(), sequence->ids.end());
    places_.insert(places_.end(), sequence->positions.begin(), sequence->positions.end());
    kinds_.insert(kinds_.end(), sequence->types.begin(), sequence->types.end());
    kinds_.resize(ids_.size());
  }
  ids_ref_ = backend.Stage(ids_);
  places_ref_ = backend.Stage(places_);
  if (config_.types > 0) kinds_ref_ = backend.Stage(kinds_);
  wanted_ref_ = backend.Stage(plan_.wanted_rows);
  for (const auto& [window, plan] : plan_.layers) plan_refs_[window] = backend.Stage(plan);
  wanted_plan_ref_ = backend.Stage(plan_.wanted);
}

void TransformerPass::Take(Backend& backend) {
  using enum RowType;
  using enum Backend::Tail;
  x_ = backend.Take(tokens(), width(), kFloat, kPanel);
  input_ = backend.TakeInput(x_, config_.norms);
  kept_ = backend.TakeKept(x_, wanted());
  kept_input_ = input_.data == x_.data ? kept_ : input_;
  projections_ = backend.Take(tokens(), 3 * width(), kCompute, kPanel);
  queries_ = backend.Take(wanted(), width(), kCompute);
  z_ = backend.Take(tokens(), width(), kCompute, kPanel);
}

void TransformerPass::LeaveDropped(int layer) {
  batch_.Leave([&](RaggedBatch::Place from, RaggedBatch::Place to, int64_t rows) {
    if (layer == 0) return;
    MoveRows(x_, from.row, to.row, rows);
    if (input_.data != x_.data) MoveRows(input_, from.row, to.row, rows);
  });
  plan_ = PlanTransformer(config_, batch_, tile_rows_);
}

void TransformerPass::Embed(Backend& backend) {
  const auto table = [](const Table& given) { return given ? &given : nullptr; };
  const bool own_input = pre_norm() || compute_ != Compute::kFp32;
  ops::Embed args;
  args.words = &weights_.words;
  args.positions = table(weights_.positions);
  args.types = table(weights_.types);
  args.ids = ids_ref_;
  args.places = places_ref_;
  args.kinds = kinds_ref_;
  args.norm = &weights_.embedding_norm;
  args.x = x_.First(tokens());
  if (own_input && !pre_norm()) args.input = input_.First(tokens());
  backend.Run(args);
  if (!pre_norm()) return;
  const NormWeight& first = weights_.layers[0].attention_norm;
  if (first.width > 0) {
    backend.Run(ops::Residual{args.x, {}, &first, NormPlace::kPre, input_.First(tokens())});
  } else {
    backend.Run(ops::Narrow{args.x, input_.First(tokens())});
  }
}

void TransformerPass::Attend(Backend& backend, int layer) {
  const TransformerConfig::Layer& kind = config_.layers[layer];
  const Weight& project = weights_.layers[layer].project;
  const Rows rows = projections_.First(tokens());
  if (kind.rotary >= 0) {
    const Rotary rotary = {&weights_.angles[kind.rotary], places_ref_, 2 * width()};
    backend.Run(ops::ProjectRotated{project, rotary, input_.First(tokens()), rows});
  } else {
    backend.Run(ops::Project{project, input_.First(tokens()), rows});
  }
  Rows queries = rows.Columns(0, width());
  if (last(layer)) {
    const Rows kept = queries_.First(wanted());
    backend.Run(ops::Gather{queries, wanted_ref_, kept});
    queries = kept;
  }
  const kernels::Plan& plan = last(layer) ? plan_.wanted : plan_.layers.at(kind.window);
  const std::vector<kernels::Source> sources(
      plan.sources.size(), HeadsSource(compute_, rows.Columns(width(), width()),
                                       rows.Columns(2 * width(), width()), config_.heads));
  kernels::Call call = HeadsCall(compute_, queries, z_, config_.heads);
  call.sources = sources;
  backend.Run(ops::Attend{last(layer) ? wanted_plan_ref_ : plan_refs_.at(kind.window), call});
}

void TransformerPass::Finish(Backend& backend, int layer) {
  const TransformerLayer& own = weights_.layers[layer];
  BlockWeights block;
  block.out = &own.out;
  block.after_attention = &own.middle_norm;
  block.expand = &own.expand;
  block.gate = own.gate ? &*own.gate : nullptr;
  block.contract = &own.contract;
  block.after_layer = &own.output_norm;
  if (pre_norm()) {
    block.after_layer = last(layer) ? nullptr : &weights_.layers[layer + 1].attention_norm;
    block.last = last(layer) ? &weights_.final_norm : nullptr;
  }
  block.activation = config_.activation;
  block.norms = config_.norms;
  if (!last(layer)) {
    const int64_t rows = tokens();
    return backend.Run(
        ops::FeedForward{block, {x_.First(rows), input_.First(rows), z_.First(rows)}});
  }
  const int64_t rows = wanted();
  backend.Run(ops::Keep{x_, wanted_ref_, kept_});
  backend.Run(
      ops::FeedForward{block, {kept_.First(rows), kept_input_.First(rows), z_.First(rows)}});
}

void TransformerPass::Layer(Backend& backend, int layer) {
  Attend(backend, layer);
  Finish(backend, layer);
}

}  // namespace longview::models
