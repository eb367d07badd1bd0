#include "models/transformer_ls/pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/ops/attend.h"
#include "models/ops/cache_rows.h"
#include "models/ops/deliver.h"
#include "models/ops/embed.h"
#include "models/ops/feed_forward.h"
#include "models/ops/long_short.h"
#include "models/ops/move_rows.h"
#include "models/transformer_ls/append_segments.h"
#include "models/transformer_ls/cache_layout.h"
#include "models/transformer_ls/score_positions.h"

namespace longview::models {

using kernels::CacheStep;
using kernels::kEarlyStrip;
using kernels::kLateStrip;
using kernels::kWindowStrip;
using kernels::ScheduleSource;

LsPass::LsPass(const LsContext& context, std::vector<TokenRun> runs, int64_t logit_rows)
    : context_(context),
      config_(*context.config),
      logit_rows_(logit_rows),
      layout_(LayOutLsPass(context, std::move(runs))) {
  for (const TokenRun& run : layout_.runs) {
    ids_.insert(ids_.end(), run.ids.begin(), run.ids.end());
    for (int64_t i = 0; i < run.wanted; ++i) {
      wanted_.push_back(static_cast<int32_t>(run.end() - run.wanted + i));
      logits_to_.push_back(run.logits == nullptr ? nullptr : run.logits + i * config_.vocab);
    }
  }
  // A list of blocks, and an offset for every sequence of a call.
  if (config_.zero_memory) {
    zeros_.resize(std::max(static_cast<size_t>(ZeroEntries(config_)), layout_.runs.size()));
  }
}

absl::Status LsPass::Append() {
  context_.tables->Cover(layout_.most_segment_ids);
  step_.emplace(context_.cache);
  return AppendRuns(layout_.runs, *step_);
}

// Before Append, lists are as long as any of sequences of this length.
void LsPass::ListTable(const LsGroup& layout, int strip, Group& group) const {
  std::vector<int32_t>& blocks = group.blocks[static_cast<size_t>(strip)];
  std::vector<int32_t>& offsets = group.offsets[static_cast<size_t>(strip)];
  offsets.clear();
  if (step_) {
    const kernels::CacheTable& table = step_->table(layout.group, strip);
    blocks.assign(table.blocks.begin(), table.blocks.end());
    for (size_t s = 0; s < table.first_block.size(); ++s) {
      offsets.push_back(table.offsets[s] - table.first_block[s]);
    }
    return RoundUpBlocks(layout, blocks);
  }
  std::optional<kernels::CacheShape> counted;
  if (context_.cache == nullptr) counted = LsCacheShape(config_, kernels::DType::kFloat32);
  const kernels::CacheShape& shape = counted ? *counted : context_.cache->shape();
  int64_t most = 0;
  for (int i = layout.run0; i < layout.run0 + layout.runs; ++i) {
    const TokenRun& run = layout_.runs[static_cast<size_t>(i)];
    most += strip == kWindowStrip ? shape.MaxBlocks(strip)
                                  : shape.Blocks(strip, run.start + run.rows());
  }
  blocks.resize(static_cast<size_t>(most));
  offsets.resize(static_cast<size_t>(layout.runs));
  RoundUpBlocks(layout, blocks);
}

void LsPass::StageGroup(Backend& backend, size_t index) {
  const LsGroup& layout = layout_.groups[index];
  if (layout.runs == 0) return;
  Group& group = groups_[index];
  for (int strip = kWindowStrip; strip <= (config_.early() ? kEarlyStrip : kLateStrip); ++strip) {
    const auto s = static_cast<size_t>(strip);
    ListTable(layout, strip, group);
    group.tables[s] = StageBlocks(backend, group.blocks[s], group.offsets[s]);
  }
  std::vector<kernels::CachePlace>& counted = places_[kWindowStrip];
  if (!step_) counted.resize(static_cast<size_t>(layout.rows));
  group.window =
      StagePlaces(backend, context_.cache,
                  step_ ? step_->places(layout.group, kWindowStrip) : std::span(counted));
  group.plan = backend.Stage(layout.plan);
  group.plan.decodes = layout.decodes();
}

// Places of all groups, one behind the other, as their pieces are.
PlacesRef LsPass::StageLandmarks(Backend& backend, int strip) {
  std::vector<kernels::CachePlace>& places = places_[static_cast<size_t>(strip)];
  places.clear();
  for (const LsGroup& group : layout_.groups) {
    if (!step_ || group.closed == 0) continue;
    const std::span<const kernels::CachePlace> own = step_->places(group.group, strip);
    places.insert(places.end(), own.begin(), own.end());
  }
  places.resize(static_cast<size_t>(layout_.closed * config_.rank));
  return StagePlaces(backend, context_.cache, places);
}

void LsPass::Stage(Backend& backend) {
  ids_ref_ = backend.Stage(ids_);
  wanted_ref_ = backend.Stage(wanted_);
  zeros_ref_ = backend.Stage(zeros_);
  window_limits_ = backend.Stage(layout_.window_limits);
  segment_limits_ = backend.Stage(layout_.segment_limits);
  for (size_t g = 0; g < groups_.size(); ++g) StageGroup(backend, g);
  pieces_ = StagePieces(backend, context_.cache, layout_.pieces);
  late_ = StageLandmarks(backend, kLateStrip);
  if (config_.early()) early_ = StageLandmarks(backend, kEarlyStrip);
}

void LsPass::Take(Backend& backend) {
  using enum RowType;
  const auto width = static_cast<int64_t>(config_.width);
  const int64_t rows = layout_.rows, wanted = std::min(layout_.wanted, logit_rows_);
  const int64_t decoding = layout_.groups[2].rows;
  const Backend::Tail read = layout_.many_rows > 0 ? Backend::Tail::kPanel : Backend::Tail::kNone;
  x_ = backend.Take(rows, width, kFloat, read);
  input_ = backend.compute() == Compute::kFp32 ? x_ : backend.Take(rows, width, kCompute, read);
  parts_ = TakeLongShort(backend, rows, width, config_.columns(), /*beside=*/true);
  z_ = backend.Take(rows, width, kCompute, read);
  window_scores_ = backend.Take(config_.heads, decoding * config_.window, kFloat);
  segment_scores_ = backend.Take(config_.heads, decoding * layout_.segment_stride, kFloat);
  const int64_t means = config_.early() ? layout_.closed * config_.rank : 0;
  hidden_means_ = backend.Take(means, width, kCompute,
                               means > 0 ? Backend::Tail::kPanel : Backend::Tail::kNone);
  logit_input_ = backend.Take(wanted, width, kCompute, wanted > 0 ? read : Backend::Tail::kNone);
  logits_ = TakeDelivered(backend, wanted, config_.vocab);
}

template <typename Use>
void LsPass::ForParts(int64_t first, Use&& use) const {
  // Panels may write past their rows: the few rows behind them come second.
  const int64_t many = layout_.many_rows;
  if (first < many) use(first, many - first, false);
  if (layout_.rows > many) use(many, layout_.rows - many, true);
}

// H = sqrt(d) * embedding; nothing is added for positions.
void LsPass::Embed(Backend& backend) {
  ops::Embed args;
  args.words = &context_.weights->words;
  args.ids = ids_ref_;
  args.factor = std::sqrt(static_cast<float>(config_.width));
  if (config_.pre_norm) args.norm = &WeightsOf(0).norm1;
  args.x = x_;
  args.input = input_;
  backend.Run(args);
}

void LsPass::Project(Backend& backend, const LsLmLayer& weights) const {
  ForParts(0, [&](int64_t row, int64_t count, bool few) {
    backend.Run(ops::ProjectLongShort{weights.project, weights.window_norm,
                                      input_.Part(row, count, few), count,
                                      parts_.Part(row, count, few)});
  });
}

// Two forms in kBlocks: averaged after projection, and before, by the projection of a token.
void LsPass::CloseSegments(Backend& backend, int layer) const {
  const LsLmLayer& weights = WeightsOf(layer);
  const StripRef strip = StripOf(kLateStrip, layer);
  ops::AppendSegments args{.pieces = pieces_,
                           .rank = config_.rank,
                           .from = parts_,
                           .hidden = {},
                           .hidden_means = hidden_means_,
                           .norm = weights.segment_norm,
                           .strip = strip,
                           .places = late_};
  if (config_.early()) args.hidden = x_;
  backend.Run(args);
  if (hidden_means_.count == 0) return;
  backend.Run(ops::StoreProjected{weights.project, weights.segment_norm, hidden_means_,
                                  StripOf(kEarlyStrip, layer), early_});
}

void LsPass::StoreWindow(Backend& backend, int layer, size_t index) const {
  const LsGroup& group = layout_.groups[index];
  if (group.runs == 0) return;
  backend.Run(ops::Store{StripOf(kWindowStrip, layer),
                         parts_.keys.From(group.row0).First(group.rows),
                         parts_.values.From(group.row0).First(group.rows), groups_[index].window});
}

kernels::Source LsPass::SourceOf(Backend& backend, ScheduleSource kind, int layer,
                                 const Group& group) const {
  kernels::Source source;
  if (kind == ScheduleSource::kFresh) {
    source = HeadsSource(backend.compute(), parts_.keys, parts_.values, config_.heads);
  } else if (context_.zero != nullptr && (kind == ScheduleSource::kConstantSegments ||
                                          kind == ScheduleSource::kConstantWindow)) {
    source = context_.zero->Of(kind, layer, zeros_ref_.data);
  } else {
    const int strip = kernels::StripOf(kind);
    source = CachedSource(backend, StripOf(strip, layer), group.tables[static_cast<size_t>(strip)]);
  }
  if (OfWindow(kind)) source.q_add = WeightsOf(layer).window_add.floats();
  return source;
}

std::array<kernels::Table, 2> LsPass::TablesOf(Backend& backend, int layer,
                                               const LsGroup& layout) const {
  // While a forward is counted the tables may grow in another thread; they make no difference.
  PositionTable window, segments;
  if (step_) {
    window = context_.tables->Window(layer);
    segments = context_.tables->Segments(layer);
  }
  if (!layout.decodes()) return {window.rows, segments.rows};
  const PositionScores scores[] = {
      {window, window_limits_, config_.window, window_scores_},
      {segments, segment_limits_, layout_.segment_stride, segment_scores_}};
  backend.Run(
      ops::ScorePositions{parts_.q.From(layout.row0).First(layout.rows), config_.heads, scores});
  const auto table = [](const Rows& made) {
    kernels::Table added;
    added.data = made.data;
    added.entries = static_cast<int32_t>(made.width);
    added.head_stride = made.width;
    return added;
  };
  return {table(window_scores_), table(segment_scores_)};
}

void LsPass::Attend(Backend& backend, int layer, size_t index) const {
  const LsGroup& layout = layout_.groups[index];
  if (layout.runs == 0) return;
  std::array<kernels::Source, 6> sources;
  size_t count = 0;
  for (const ScheduleSource kind : layout.sources) {
    sources[count++] = SourceOf(backend, kind, layer, groups_[index]);
  }
  const std::array<kernels::Table, 2> tables = TablesOf(backend, layer, layout);
  kernels::Call call = HeadsCall(backend.compute(), parts_.q, z_, config_.heads);
  call.sources = std::span(sources).first(count);
  call.tables = tables;
  backend.Run(ops::Attend{groups_[index].plan, call});
}

// pre_ln keeps the stream normalised: what follows the FFN is the next layer's norm1.
void LsPass::Finish(Backend& backend, int layer, int64_t first) const {
  const LsLmLayer& weights = WeightsOf(layer);
  const bool last = layer + 1 == config_.layers;
  BlockWeights block;
  block.out = &weights.out;
  block.expand = &weights.expand;
  block.contract = &weights.contract;
  block.after_attention = config_.pre_norm ? &weights.norm2 : &weights.norm1;
  block.after_layer = !config_.pre_norm ? &weights.norm2
                      : last            ? nullptr
                                        : &WeightsOf(layer + 1).norm1;
  block.activation = config_.activation;
  ForParts(first, [&](int64_t row, int64_t count, bool few) {
    backend.Run(ops::FeedForward{
        block, {x_.Part(row, count, few), input_.Part(row, count, few), z_.Part(row, count, few)}});
  });
}

// Chunks of prefill attend before any row of theirs is stored, the rest behind it.
void LsPass::Layer(Backend& backend, int layer) {
  Project(backend, WeightsOf(layer));
  CloseSegments(backend, layer);
  const bool last = layer + 1 == config_.layers;
  // Rows whose last layer nobody reads are left out where they come first: chunks of a prompt.
  const LsGroup& fresh = layout_.groups[0];
  const auto chunks = std::span(layout_.runs).first(static_cast<size_t>(fresh.runs));
  const bool skip = last && WantedRows(chunks) == 0;
  if (!skip) Attend(backend, layer, 0);
  for (const size_t group : {0, 1, 2}) StoreWindow(backend, layer, group);
  if (last && layout_.wanted == 0) return;
  Attend(backend, layer, 1);
  Attend(backend, layer, 2);
  Finish(backend, layer, skip ? fresh.rows : 0);
}

Rows LsPass::Logits(Backend& backend, int64_t first, int64_t count) {
  const IndexRef rows = {wanted_ref_.data == nullptr ? nullptr : wanted_ref_.data + first, count};
  backend.Run(ops::Gather{input_, rows, logit_input_.First(count)});
  const int64_t many = std::clamp<int64_t>(layout_.many_wanted - first, 0, count);
  const auto multiply = [&](int64_t from, int64_t part, bool few) {
    if (part == 0) return;
    backend.Run(ops::Deliver{context_.weights->logits, logit_input_.Part(from, part, few),
                             logits_.From(from).First(part),
                             std::span(logits_to_).subspan(static_cast<size_t>(first + from))});
  };
  multiply(0, many, false);
  multiply(many, count - many, true);
  return logits_.First(count);
}

}  // namespace longview::models
