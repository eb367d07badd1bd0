#include "models/decoder_stack/pass.h"

#include <algorithm>
#include <utility>

#include "models/layers/span_rows.h"
#include "models/ops/attend.h"
#include "models/ops/cache_rows.h"
#include "models/ops/deliver.h"
#include "models/ops/embed.h"
#include "models/ops/feed_forward.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"

namespace longview::models {
namespace {

using kernels::kBlockSlots;

// Lists that are as long as any of a sequence with so many blocks.
void AddCounted(int64_t count, std::vector<int32_t>& blocks, std::vector<int32_t>& offsets) {
  blocks.resize(blocks.size() + static_cast<size_t>(count));
  offsets.push_back(0);
}

Rows PartOf(const Rows& rows, int64_t first, int64_t count, bool few) {
  Rows part = rows.From(first).First(count);
  part.few = few;
  return part;
}

}  // namespace

StackPass::StackPass(const StackContext& context, std::vector<TokenRun> runs, int64_t logit_rows)
    : context_(context),
      config_(*context.config),
      logit_rows_(logit_rows),
      layout_(LayOutStackPass(context, std::move(runs))) {
  for (const TokenRun& run : layout_.runs) {
    ids_.insert(ids_.end(), run.ids.begin(), run.ids.end());
    for (int64_t i = 0; i < run.rows(); ++i) {
      places_.push_back(static_cast<int32_t>(config_.first_position + run.start + i));
    }
    for (int64_t i = 0; i < run.wanted; ++i) {
      wanted_.push_back(static_cast<int32_t>(run.end() - run.wanted + i));
      logits_to_.push_back(run.logits == nullptr ? nullptr : run.logits + i * config_.vocab);
    }
  }
  if (context.weights->types) kinds_.resize(ids_.size());
}

absl::Status StackPass::Append() {
  step_.emplace(context_.frame.cache);
  return AppendRuns(layout_.runs, *step_);
}

void StackPass::ListDocuments() {
  document_blocks_.clear();
  document_offsets_.clear();
  kernels::CacheTable table;
  for (const StackDocument& document : layout_.documents) {
    if (document.keys != nullptr) {
      context_.frame.documents->AddTable(*document.keys, 0, &table);
    } else {
      AddCounted((document.count + kBlockSlots - 1) / kBlockSlots, document_blocks_,
                 document_offsets_);
    }
  }
  if (!table.first_block.empty()) AddTable(table, document_blocks_, document_offsets_);
}

void StackPass::Stage(Backend& backend) {
  ids_ref_ = backend.Stage(ids_);
  places_ref_ = backend.Stage(places_);
  kinds_ref_ = backend.Stage(kinds_);
  wanted_ref_ = backend.Stage(wanted_);
  const kernels::CacheStep* const step = step_ ? &*step_ : nullptr;
  const kernels::CacheShape shape = StackCacheShape(config_, kernels::DType::kFloat32);
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    group.strip.List(step, shape, 0, layout_.groups[g], layout_.runs);
    group.strip.Stage(backend, context_.frame.cache);
    group.plans.assign(static_cast<size_t>(config_.layers()), PlanRef());
    for (const auto& [layer, plan] : layout_.groups[g].plans) {
      group.plans[static_cast<size_t>(layer)] = backend.Stage(plan);
    }
  }
  if (!config_.encoder) return;
  ListDocuments();
  cross_ref_ = backend.Stage(layout_.cross);
  documents_ref_ = StageBlocks(backend, document_blocks_, document_offsets_);
}

void StackPass::Take(Backend& backend) {
  using enum RowType;
  const auto width = static_cast<int64_t>(config_.width);
  const int64_t rows = layout_.rows, wanted = std::min(layout_.wanted, logit_rows_);
  const Backend::Tail read = layout_.many_rows > 0 ? Backend::Tail::kPanel : Backend::Tail::kNone;
  const Backend::Tail written =
      layout_.many_rows > 0 ? Backend::Tail::kWritten : Backend::Tail::kNone;
  x_ = backend.Take(rows, width, kFloat, read);
  input_ = backend.compute() == Compute::kFp32 ? x_ : backend.Take(rows, width, kCompute, read);
  qkv_ = backend.Take(rows, 3 * width, kCompute, written);
  queries_ = qkv_;
  queries_.width = queries_.stride = width;
  z_ = backend.Take(rows, width, kCompute, read);
  logit_input_ = backend.Take(wanted, width, kCompute, wanted > 0 ? read : Backend::Tail::kNone);
  logits_ = TakeDelivered(backend, wanted, config_.vocab);
}

template <typename Use>
void StackPass::ForParts(Use&& use) const {
  const int64_t many = layout_.many_rows, few = layout_.rows - many;
  // Panels may write past their rows: the few rows behind them come second.
  if (many > 0) use([&](const Rows& rows) { return PartOf(rows, 0, many, false); });
  if (few > 0) use([&](const Rows& rows) { return PartOf(rows, many, few, true); });
}

void StackPass::Embed(Backend& backend) {
  const StackWeights& weights = *context_.weights;
  ops::Embed args;
  args.words = &weights.words;
  args.positions = &weights.positions;
  if (weights.types) args.types = &weights.types;
  args.ids = ids_ref_;
  args.places = places_ref_;
  args.kinds = kinds_ref_;
  args.norm = &weights.embedding_norm;
  args.x = x_;
  args.input = input_;
  backend.Run(args);
}

void StackPass::Attend(Backend& backend, int layer, int index) const {
  const StackGroup& layout = layout_.groups[static_cast<size_t>(index)];
  if (layout.runs == 0) return;
  const Group& group = groups_[static_cast<size_t>(index)];
  const int64_t width = config_.width;
  const StripRef strip = {context_.frame.cache, 0, layer, config_.heads};
  const kernels::Source sources[] = {CachedSource(backend, strip, group.strip.blocks()),
                                     HeadsSource(backend.compute(), qkv_.Columns(width, width),
                                                 qkv_.Columns(2 * width, width), config_.heads)};
  const std::optional<kernels::Table> table = context_.weights->distances.Of(layer);
  kernels::Call call = HeadsCall(backend.compute(), qkv_.Columns(0, width), z_, config_.heads);
  const bool fresh = layout.group == kernels::CacheStep::kPrefill;
  call.sources = std::span(sources).first(fresh ? 2 : 1);
  if (table) call.tables = {&*table, 1};
  backend.Run(ops::Attend{group.plans[static_cast<size_t>(PatternOf(layer))], call});
}

void StackPass::Store(Backend& backend, int layer, int index) const {
  const StackGroup& layout = layout_.groups[static_cast<size_t>(index)];
  if (layout.runs == 0) return;
  const int64_t width = config_.width;
  const Rows rows = qkv_.From(layout.row0).First(layout.rows);
  backend.Run(ops::Store{{context_.frame.cache, 0, layer, config_.heads},
                         rows.Columns(width, width),
                         rows.Columns(2 * width, width),
                         groups_[static_cast<size_t>(index)].strip.places()});
}

void StackPass::AttendDocuments(Backend& backend, int layer, const StackLayer::Cross& cross) const {
  ForParts([&](auto&& part) {
    backend.Run(ops::Project{cross.query, part(input_), part(queries_)});
  });
  const kernels::Source sources[] = {
      CachedSource(backend, {context_.frame.documents, 0, layer, config_.heads}, documents_ref_)};
  kernels::Call call = HeadsCall(backend.compute(), queries_, z_, config_.heads);
  call.sources = sources;
  backend.Run(ops::Attend{cross_ref_, call});
}

void StackPass::Finish(Backend& backend, int layer) const {
  const StackLayer& weights = context_.weights->layers[static_cast<size_t>(layer)];
  BlockWeights block;
  block.out = &weights.out;
  block.after_attention = &weights.attention_norm;
  if (weights.cross) {
    ForParts([&](auto&& part) {
      backend.Run(ops::ProjectAdded{weights.out, part(z_), weights.attention_norm, NormPlace::kPost,
                                    part(x_), part(input_)});
    });
    AttendDocuments(backend, layer, *weights.cross);
    block.out = &weights.cross->out;
    block.after_attention = &weights.cross->norm;
  }
  block.expand = &weights.expand;
  block.contract = &weights.contract;
  block.after_layer = &weights.output_norm;
  block.activation = config_.activation;
  ForParts([&](auto&& part) {
    backend.Run(ops::FeedForward{block, {part(x_), part(input_), part(z_)}});
  });
}

// Chunks of prefill attend before any row is stored, the rest behind it.
void StackPass::Layer(Backend& backend, int layer) {
  const StackLayer& weights = context_.weights->layers[static_cast<size_t>(layer)];
  ForParts([&](auto&& part) { backend.Run(ops::Project{weights.qkv, part(input_), part(qkv_)}); });
  // Nobody reads the last layer of a prompt's earlier chunks.
  const bool skip = layer + 1 == config_.layers() && layout_.wanted == 0;
  if (!skip) Attend(backend, layer, 0);
  for (const int group : {0, 1, 2}) Store(backend, layer, group);
  if (skip) return;
  Attend(backend, layer, 1);
  Attend(backend, layer, 2);
  Finish(backend, layer);
}

Rows StackPass::Logits(Backend& backend, int64_t first, int64_t count) {
  const StackWeights& weights = *context_.weights;
  const IndexRef rows = {wanted_ref_.data == nullptr ? nullptr : wanted_ref_.data + first, count};
  backend.Run(ops::Gather{input_, rows, logit_input_.First(count)});
  const int64_t many = std::clamp<int64_t>(layout_.many_wanted - first, 0, count);
  const auto multiply = [&](int64_t from, int64_t part, bool few) {
    if (part == 0) return;
    const Rows in = PartOf(logit_input_, from, part, few);
    if (weights.head_dense) {
      backend.Run(
          ops::ProjectActivated{*weights.head_dense, Activation::kGelu, weights.head_norm, in, in});
    }
    backend.Run(ops::Deliver{weights.logits, in, logits_.From(from).First(part),
                             std::span(logits_to_).subspan(static_cast<size_t>(first + from))});
  };
  multiply(0, many, false);
  multiply(many, count - many, true);
  return logits_.First(count);
}

}  // namespace longview::models
