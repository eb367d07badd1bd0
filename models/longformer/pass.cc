#include "models/longformer/pass.h"

#include "models/ops/embed.h"
#include "models/ops/move_rows.h"

#include <algorithm>

namespace longview::models {
namespace {

constexpr int kLast = -1;  // Key of the last layer's plan where it is one of its own.

bool WantsAll(EncoderPass::Sequences sequences) {
  return std::all_of(sequences.begin(), sequences.end(), [](const EncoderSequence* sequence) {
    return static_cast<int>(sequence->wanted.size()) == sequence->tokens();
  });
}

}  // namespace

LongformerPass::LongformerPass(const LongformerConfig& config, const LongformerWeights& weights,
                               Compute compute, Sequences sequences, int tile_rows)
    : config_(config),
      weights_(weights),
      compute_(compute),
      tile_rows_(tile_rows),
      subset_(!WantsAll(sequences)),
      batch_(sequences) {
  MakePlans();
}

int LongformerPass::KeyOf(int layer) const {
  if (subset_ && layer + 1 == config_.layers) return kLast;
  int first = 0;
  while (config_.window[first] != config_.window[layer] ||
         config_.dilation[first] != config_.dilation[layer]) {
    ++first;
  }
  return first;
}

void LongformerPass::MakePlans() {
  plans_.clear();
  for (int layer = 0; layer < config_.layers; ++layer) {
    const int key = KeyOf(layer);
    if (plans_.contains(key)) continue;
    plans_[key].host =
        PlanLayer(config_, layer, batch_.sequences(), batch_.offsets(), key == kLast, tile_rows_);
  }
  wanted_offsets_ = {0};
  for (const EncoderSequence* sequence : batch_.sequences()) {
    wanted_offsets_.push_back(wanted_offsets_.back() +
                              static_cast<int64_t>(sequence->wanted.size()));
  }
}

void LongformerPass::Stage(Backend& backend) {
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
  kinds_ref_ = backend.Stage(kinds_);
  for (auto& [key, plan] : plans_) StageLayer(backend, batch_.roles(), plan);
}

void LongformerPass::Take(Backend& backend) {
  using enum RowType;
  using enum Backend::Tail;
  rows_ = {};
  rows_.x = backend.Take(tokens(), width(), kFloat, kPanel);
  rows_.input = backend.TakeInput(rows_.x, NormPlace::kPost);
  rows_.qkv = backend.Take(tokens(), 3 * width(), kCompute, kPanel);
  rows_.z = backend.Take(tokens(), width(), kCompute, kPanel);
  if (subset_) {
    queries_ = backend.Take(wanted(), width(), kCompute);
    kept_ = backend.TakeKept(rows_.x, wanted());
    kept_input_ = rows_.input.data == rows_.x.data ? kept_ : rows_.input;
  }
  std::vector<const StagedLayer*> layers;
  for (const auto& [key, plan] : plans_) layers.push_back(&plan);
  TakeGlobalRows(backend, config_, layers, rows_);
}

void LongformerPass::LeaveDropped(int layer) {
  batch_.Leave([&](RaggedBatch::Place from, RaggedBatch::Place to, int64_t rows) {
    if (layer == 0) return;
    MoveRows(rows_.x, from.row, to.row, rows);
    if (rows_.input.data != rows_.x.data) MoveRows(rows_.input, from.row, to.row, rows);
  });
  MakePlans();
}

void LongformerPass::Embed(Backend& backend) {
  ops::Embed args;
  args.words = &weights_.words;
  args.positions = &weights_.positions;
  if (weights_.types) args.types = &weights_.types;
  args.ids = ids_ref_;
  args.places = places_ref_;
  args.kinds = kinds_ref_;
  args.norm = &weights_.embedding_norm;
  args.x = rows_.x.First(tokens());
  args.input = rows_.input.First(tokens());
  backend.Run(args);
}

// Only the rows that heads read: their neighbourhood gives keys and values.
void LongformerPass::LastLayer(Backend& backend, const LongformerLayerRun& run,
                               const StagedLayer& plan) {
  const Rows locals = rows_.z.First(plan.host.locals), qkv = rows_.qkv.First(plan.host.locals);
  const Rows queries = queries_.First(wanted());
  backend.Run(ops::Gather{rows_.input, plan.local_rows, locals});
  run.Project(backend, locals, qkv);
  backend.Run(ops::Gather{rows_.qkv.Columns(0, width()), plan.query_rows, queries});
  run.AttendLocal(backend, plan, queries);
}

void LongformerPass::Layer(Backend& backend, int layer) {
  const StagedLayer& plan = PlanOf(layer);
  const LongformerLayerRun run(config_, weights_.layers[static_cast<size_t>(layer)], compute_,
                               rows_);
  if (plan.host.whole) {
    run.Project(backend, rows_.input.First(tokens()), rows_.qkv.First(tokens()));
    run.AttendLocal(backend, plan, rows_.qkv.Columns(0, width()));
  } else {
    LastLayer(backend, run, plan);
  }
  run.AttendFolded(backend, plan, rows_.z);
  run.AttendUnfolded(backend, plan);
  const Rows z = rows_.z.First(plan.host.outputs);
  if (plan.host.whole) {
    return run.Finish(backend, rows_.x.First(tokens()), rows_.input.First(tokens()), z);
  }
  backend.Run(ops::Keep{rows_.x, plan.out_rows, kept_});
  run.Finish(backend, kept_.First(wanted()), kept_input_.First(wanted()), z);
}

}  // namespace longview::models
