#include "models/longformer/pass.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "kernels/span/band_planner.h"
#include "models/longformer/layer_plan.h"
#include "models/ops/embed.h"
#include "models/ops/move_rows.h"

namespace longview::models {

namespace {

constexpr int kLast = -1;  // Key of the last layer's plan where it is one of its own.

bool WantsAll(EncoderPass::Sequences sequences) {
  return std::all_of(sequences.begin(), sequences.end(), [](const EncoderSequence* sequence) {
    return static_cast<int>(sequence->wanted.size()) == sequence->tokens();
  });
}

// A document of `tokens` tokens, the first `globals` of them global, that wants its first `wanted`
// rows.
EncoderSequence MakeDocument(int tokens, int globals, int wanted) {
  EncoderSequence document;
  document.ids.assign(static_cast<size_t>(tokens), 0);
  document.positions.assign(static_cast<size_t>(tokens), 0);
  document.roles.assign(static_cast<size_t>(tokens), kernels::kLocalToken);
  std::fill_n(document.roles.begin(), globals, kernels::kGlobalToken);
  document.wanted.resize(static_cast<size_t>(wanted));
  std::iota(document.wanted.begin(), document.wanted.end(), 0);
  return document;
}

// Bytes of a layer's plans and lists. A tile has one span of global tokens and one per block of
// its window; a span of its own has an interval for every row.
size_t LayerListBound(const LongformerConfig& config, int layer, size_t tokens) {
  const std::vector<int>& dilation = config.dilation[layer];
  const std::set<int> steps(dilation.begin(), dilation.end());
  const size_t runs = std::max<size_t>(steps.size(), 1) * (dilation.empty() ? 1 : config.heads);
  const size_t widest = steps.empty() ? 1 : static_cast<size_t>(*steps.rbegin());
  const size_t spans = 4 + 2 * static_cast<size_t>(config.window[layer]) / kernels::kBlockSlots;
  const size_t heads = static_cast<size_t>(config.heads);
  const size_t band =
      tokens * runs *
          (sizeof(kernels::Tile) + spans * (sizeof(kernels::Span) + sizeof(kernels::Interval))) +
      tokens * heads * sizeof(kernels::Item);
  // Every residue class begins a block of slots.
  const size_t slots = (runs + 2) * (tokens + (widest + 1) * kernels::kBlockSlots);
  const size_t parts = tokens / kernels::kSplitSlots + 2;
  const size_t full =
      tokens * heads * sizeof(kernels::Merge) +
      parts * (tokens / 8 + 1) *
          (sizeof(kernels::Tile) + sizeof(kernels::Span) + heads * sizeof(kernels::Item));
  return band + full + slots * (sizeof(int32_t) + 1) + 16 * tokens * sizeof(int32_t);
}

size_t ListBound(const LongformerConfig& config, int max_tokens) {
  const auto tokens = static_cast<size_t>(max_tokens);
  size_t bytes = 8 * tokens * sizeof(int32_t);
  for (int layer = 0; layer < config.layers; ++layer) {
    bytes += LayerListBound(config, layer, tokens) + 32 * kernels::kAlignment;
  }
  return bytes;
}

}  // namespace

LongformerPass::LongformerPass(const LongformerConfig& config, const LongformerWeights& weights,
                               Compute compute, Sequences sequences, int tile_rows,
                               int64_t piece_rows)
    : config_(config),
      weights_(weights),
      compute_(compute),
      tile_rows_(tile_rows),
      piece_rows_(piece_rows),
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

LayerPlanner LongformerPass::Planner() const {
  return {config_, batch_.sequences(), batch_.offsets(), tile_rows_, piece_rows_};
}

void LongformerPass::MakePlans() {
  plans_.clear();
  const LayerPlanner planner = Planner();
  for (int layer = 0; layer < config_.layers; ++layer) {
    const int key = KeyOf(layer);
    if (plans_.contains(key)) continue;
    plans_[key].host = planner.Plan(layer, key == kLast);
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
  // Plans change when sequences leave, and these do not.
  LayerRows most;
  const LayerPlanner planner = Planner();
  for (const auto& [key, plan] : plans_) {
    const auto locals = static_cast<int64_t>(plan.host.local_rows.size());
    most.Include(key == kLast ? LayerRows{locals, std::max(locals, wanted()), 0}
                              : planner.Rows(key));
  }
  rows_.qkv = backend.Take(most.projections, 3 * width(), kCompute, kPanel);
  rows_.z = backend.Take(most.outputs, width(), kCompute, kPanel);
  if (most.globals > 0) cut_globals_ = backend.Take(most.globals, width(), kCompute, kPanel);
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

// The projections that a piece reads: those carried on from the piece before, and new ones.
void LongformerPass::ProjectPiece(Backend& backend, const LongformerLayerRun& run,
                                  const LayerPiece& piece, const StagedPiece& staged) {
  if (staged.cut_globals.count > 0) {
    const Rows globals = cut_globals_.First(staged.cut_globals.count);
    backend.Run(ops::Gather{rows_.input, staged.cut_globals, globals});
    run.Project(backend, globals, rows_.qkv.First(globals.count));
  }
  // A panel's tail runs into what comes behind it, which is written later.
  const Rows rows = rows_.qkv.From(piece.base);
  const int64_t carried = staged.carried.count;
  if (carried > 0) backend.Run(ops::Gather{rows_.qkv, staged.carried, rows.First(carried)});
  if (piece.projected == 0) return;
  run.Project(backend, rows_.input.From(piece.fresh).First(piece.projected),
              rows.From(carried).First(piece.projected));
}

void LongformerPass::WholeLayer(Backend& backend, const LongformerLayerRun& run,
                                const StagedLayer& plan) {
  for (size_t i = 0; i < plan.pieces.size(); ++i) {
    const LayerPiece& piece = plan.host.pieces[i];
    const StagedPiece& staged = plan.pieces[i];
    ProjectPiece(backend, run, piece, staged);
    run.AttendLocal(backend, staged.band,
                    rows_.qkv.From(piece.query).First(piece.count).Columns(0, width()));
    run.PlaceGlobal(backend, piece, staged);
    run.Finish(backend, rows_.x.From(piece.first).First(piece.count),
               rows_.input.From(piece.first).First(piece.count), rows_.z.First(piece.count));
  }
}

// Only the rows that heads read: their neighbourhood gives keys and values.
void LongformerPass::LastLayer(Backend& backend, const LongformerLayerRun& run,
                               const StagedLayer& plan) {
  const LayerPiece& piece = plan.host.pieces.front();
  const StagedPiece& staged = plan.pieces.front();
  const Rows locals = rows_.z.First(plan.local_rows.count);
  const Rows qkv = rows_.qkv.First(locals.count);
  const Rows queries = queries_.First(wanted());
  backend.Run(ops::Gather{rows_.input, plan.local_rows, locals});
  run.Project(backend, locals, qkv);
  backend.Run(ops::Gather{rows_.qkv.Columns(0, width()), plan.query_rows, queries});
  run.AttendLocal(backend, staged.band, queries);
  run.PlaceGlobal(backend, piece, staged);
  backend.Run(ops::Keep{rows_.x, plan.out_rows, kept_});
  run.Finish(backend, kept_.First(wanted()), kept_input_.First(wanted()),
             rows_.z.First(piece.count));
}

void LongformerPass::Layer(Backend& backend, int layer) {
  const StagedLayer& plan = PlanOf(layer);
  const LongformerLayerRun run(config_, weights_.layers[static_cast<size_t>(layer)], compute_,
                               rows_);
  run.AttendGlobal(backend, plan);
  plan.host.whole ? WholeLayer(backend, run, plan) : LastLayer(backend, run, plan);
}

DeviceRunBytes LongestLongformerBytes(
    const LongformerConfig& config, int max_tokens,
    absl::FunctionRef<DeviceRunBytes(RaggedBatch::Sequences)> bytes) {
  int folded = 0;
  while (folded < max_tokens && FoldsGlobals(config, folded + 1)) ++folded;
  DeviceRunBytes most;
  for (const int globals : {folded, max_tokens}) {
    // One row less than all: the last layer then has buffers of its own for nearly as many.
    for (const int wanted : {max_tokens, std::max(1, max_tokens - 1)}) {
      const EncoderSequence document = MakeDocument(max_tokens, globals, wanted);
      const std::array<const EncoderSequence*, 1> one = {&document};
      most.Include(bytes(one));
    }
  }
  most.lists = ListBound(config, max_tokens);
  return most;
}

}  // namespace longview::models
