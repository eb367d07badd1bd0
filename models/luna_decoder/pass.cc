#include "models/luna_decoder/pass.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/cuda/device_blocks.h"
#include "kernels/span/full_planner.h"
#include "models/generation/passes/document_sequence.h"
#include "models/luna/plan.h"
#include "models/luna_decoder/append_outer.h"
#include "models/luna_decoder/memory.h"
#include "models/ops/attend.h"
#include "models/ops/deliver.h"
#include "models/ops/embed.h"
#include "models/ops/feed_forward.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"
#include "models/ops/residual.h"
#include "models/ops/states.h"

namespace longview::models {

LunaTokenPass::LunaTokenPass(const LunaDecoderConfig& config, const LunaDecoderWeights& weights,
                             const TokenFrame& frame, std::vector<TokenRun> runs,
                             int64_t logit_rows)
    : config_(config),
      weights_(weights),
      frame_(frame),
      logit_rows_(logit_rows),
      runs_(std::move(runs)),
      sums_(static_cast<size_t>(config_.layers)) {
  (void)SortRuns(runs_);
  for (const TokenRun& run : runs_) {
    const PassDocument* document = translates() ? DocumentOf(run) : nullptr;
    over_.push_back({document, document == nullptr
                                   ? config_.projected
                                   : ActiveRows(*config_.encoder, document->document())});
  }
  ListRows();
  if (translates()) PlanAcross();
}

void LunaTokenPass::ListRows() {
  for (const TokenRun& run : runs_) {
    ids_.insert(ids_.end(), run.ids.begin(), run.ids.end());
    for (int64_t i = 0; i < run.rows(); ++i) {
      places_.push_back(static_cast<int32_t>(run.start + i + config_.pad + 1));
    }
    for (int64_t i = 0; i < run.wanted; ++i) {
      wanted_.push_back(static_cast<int32_t>(run.end() - run.wanted + i));
      logits_to_.push_back(run.logits == nullptr ? nullptr : run.logits + i * config_.vocab);
    }
  }
}

void LunaTokenPass::PlanAcross() {
  std::map<const PassDocument*, int32_t> first_keys;
  std::vector<kernels::FullSequence> sequences;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const TokenRun& run = runs_[i];
    const auto& [document, rows] = over_[i];
    auto key0 = static_cast<int32_t>(key_rows_);
    const auto known = first_keys.find(document);
    if (document != nullptr && known != first_keys.end()) {
      key0 = known->second;
    } else {
      first_keys[document] = key0;
      documents_.push_back(over_[i]);
      key_rows_ += rows;
    }
    sequences.push_back(
        {static_cast<int32_t>(run.row0), static_cast<int32_t>(run.rows()), key0, rows, {}});
  }
  kernels::FullPattern pattern;
  pattern.heads = config_.heads;
  pattern.tile_rows = frame_.tile_rows;
  across_ = PlanFull(pattern, sequences);
}

absl::Status LunaTokenPass::Append() {
  step_.emplace(frame_.cache);
  return AppendRuns(runs_, *step_);
}

void LunaTokenPass::ListKeys() {
  keys_at_.clear();
  for (const auto& [document, rows] : documents_) {
    float* const keys =
        document == nullptr ? nullptr : LunaDocumentOf(*frame_.documents, document->kept()).keys;
    for (int64_t row = 0; row < rows; ++row) {
      float* const at = keys == nullptr ? nullptr : keys + row * KeyParts(config_) * width();
      keys_at_.push_back({at, static_cast<int32_t>(keys_at_.size())});
    }
  }
}

void LunaTokenPass::ListSums(int layer) {
  const bool counted = !step_;
  const Table& own = weights_.layers[static_cast<size_t>(layer)].packed;
  std::vector<kernels::OuterSequence>& sums = sums_[static_cast<size_t>(layer)];
  sums.clear();
  for (size_t i = 0; i < runs_.size(); ++i) {
    const TokenRun& run = runs_[i];
    kernels::OuterSequence& sequence = sums.emplace_back();
    sequence.row0 = run.row0;
    sequence.tokens = run.rows();
    sequence.before = run.start;
    sequence.rows = over_[i].rows;
    if (counted) continue;
    const kernels::CacheSequence& cache = run.sequence->cache();
    sequence.state =
        LunaSums(*frame_.cache, cache) + kernels::cuda::StateShift(frame_.cache->shape(), layer);
    if (const PassDocument* document = over_[i].document; document != nullptr) {
      sequence.packed = LunaDocumentOf(*frame_.documents, document->kept()).packed +
                        kernels::cuda::StateShift(frame_.documents->shape(), layer);
    } else {
      sequence.packed = own.device() != nullptr ? own.device() : own.values();
    }
  }
}

void LunaTokenPass::Stage(Backend& backend) {
  ids_ref_ = backend.Stage(ids_);
  places_ref_ = backend.Stage(places_);
  wanted_ref_ = backend.Stage(wanted_);
  sums_ref_.clear();
  for (int layer = 0; layer < config_.layers; ++layer) {
    ListSums(layer);
    sums_ref_.push_back(StageOuter(backend, sums_[static_cast<size_t>(layer)]));
  }
  if (!translates()) return;
  ListKeys();
  keys_ref_ = StageStates(backend, keys_at_);
  across_ref_ = backend.Stage(across_);
}

void LunaTokenPass::Take(Backend& backend) {
  using enum RowType;
  using enum Backend::Tail;
  const auto wanted = static_cast<int64_t>(wanted_.size());
  x_ = backend.Take(rows(), width(), kFloat, kPanel);
  input_ = backend.TakeInput(x_, config_.norms);
  kept_ = backend.TakeKept(x_, wanted);
  kept_input_ = input_.data == x_.data ? kept_ : input_.First(wanted);
  projections_ = backend.Take(rows(), config_.parts() * width(), kFloat, kWritten);
  z_ = backend.Take(rows(), width(), kCompute, kPanel);
  attended_ = backend.compute() == Compute::kFp32 ? z_ : backend.Take(rows(), width(), kFloat);
  kept_z_ = backend.TakeKept(z_, wanted);
  if (translates()) {
    queries_ = backend.Take(rows(), width(), kCompute, kWritten);
    keys_ = backend.Take(key_rows_, KeyParts(config_) * width(), kCompute);
  }
  logits_ = TakeDelivered(backend, std::min(wanted, logit_rows_), config_.vocab);
}

void LunaTokenPass::Embed(Backend& backend) {
  ops::Embed args;
  args.words = &weights_.words;
  if (weights_.positions) args.positions = &weights_.positions;
  args.ids = ids_ref_;
  args.places = places_ref_;
  args.factor = config_.embed_scale;
  args.rounds_words = true;
  if (config_.embedding_norm) args.norm = &weights_.embedding_norm;
  args.x = x_;
  if (input_.data != x_.data && !pre_norm()) args.input = input_;
  backend.Run(args);
  if (pre_norm()) {
    backend.Run(ops::Residual{x_, {}, &weights_.layers[0].attention_norm, NormPlace::kPre, input_});
  }
}

// The residual around the causal attention, then what attention across adds.
void LunaTokenPass::AttendAcross(Backend& backend, int layer) {
  const LunaDecoderLayer& own = weights_.layers[static_cast<size_t>(layer)];
  const LunaCross& cross = *own.cross;
  backend.Run(ops::ProjectAdded{own.out, z_, pre_norm() ? cross.norm : own.attention_norm,
                                config_.norms, x_, input_});
  backend.Run(ops::Project{cross.query, input_, queries_});
  const int64_t shift = kernels::cuda::StateShift(LunaDocumentShape(config_), layer);
  backend.Run(ops::LoadStates{keys_ref_, shift, keys_});
  const Rows keys = keys_.Columns(0, width());
  const kernels::Source sources[] = {
      HeadsSource(backend.compute(), keys, config_.tied_kv ? keys : keys_.Columns(width(), width()),
                  config_.heads)};
  kernels::Call call = HeadsCall(backend.compute(), queries_, z_, config_.heads);
  call.sources = sources;
  backend.Run(ops::Attend{across_ref_, call});
}

void LunaTokenPass::Finish(Backend& backend, int layer) {
  const LunaDecoderLayer& own = weights_.layers[static_cast<size_t>(layer)];
  const bool last = layer + 1 == config_.layers;
  BlockWeights block;
  block.out = own.cross ? &own.cross->out : &own.out;
  block.after_attention = pre_norm()  ? &own.output_norm
                          : own.cross ? &own.cross->norm
                                      : &own.attention_norm;
  block.expand = &own.expand;
  block.contract = &own.contract;
  block.after_layer = &own.output_norm;
  if (pre_norm()) {
    block.after_layer = last ? &weights_.final_norm
                             : &weights_.layers[static_cast<size_t>(layer) + 1].attention_norm;
  }
  block.activation = config_.activation;
  block.norms = config_.norms;
  if (!last) return backend.Run(ops::FeedForward{block, {x_, input_, z_}});
  if (wanted_.empty()) return;
  backend.Run(ops::Keep{x_, wanted_ref_, kept_});
  backend.Run(ops::Keep{z_, wanted_ref_, kept_z_});
  backend.Run(ops::FeedForward{block, {kept_, kept_input_, kept_z_}});
}

void LunaTokenPass::Layer(Backend& backend, int layer) {
  const LunaDecoderLayer& own = weights_.layers[static_cast<size_t>(layer)];
  backend.Run(ops::Project{own.project, input_, projections_});
  ops::AppendOuter sums;
  sums.sequences = sums_ref_[static_cast<size_t>(layer)];
  sums.q = projections_.Columns(0, width());
  sums.g = projections_.Columns(width(), width());
  sums.k = projections_.Columns(2 * width(), width());
  sums.v = config_.tied_kv ? sums.k : projections_.Columns(3 * width(), width());
  sums.out = attended_;
  sums.heads = config_.heads;
  sums.activation = config_.phi;
  backend.Run(sums);
  if (attended_.data != z_.data) backend.Run(ops::Narrow{attended_, z_});
  if (own.cross) AttendAcross(backend, layer);
  Finish(backend, layer);
}

Rows LunaTokenPass::Logits(Backend& backend, int64_t first, int64_t count) {
  const Rows out = logits_.First(count);
  backend.Run(ops::Deliver{weights_.logits, kept_input_.From(first).First(count), out,
                           std::span(logits_to_).subspan(static_cast<size_t>(first))});
  return out;
}

}  // namespace longview::models
