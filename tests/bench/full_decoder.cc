#include "tests/bench/full_decoder.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "kernels/cuda/span/decode_plan.h"
#include "kernels/span/paged_planner.h"
#include "models/generation/passes/host_token_pass.h"
#include "models/ops/attend.h"
#include "models/ops/cache_rows.h"
#include "models/ops/deliver.h"
#include "models/ops/embed.h"
#include "models/ops/feed_forward.h"
#include "models/ops/long_short.h"
#include "tests/bench/random_lm.h"

namespace longview::bench {
namespace {

using kernels::CacheStep;
using models::LsContext;
using models::Rows;
using models::TokenRun;

LsContext ContextOf(const models::ForwardDecoder& decoder) {
  return LmOf(decoder).ContextOf(decoder.frame());
}

// One strip with every position's row.
kernels::CacheShape ShapeOf(const models::ForwardDecoder& decoder) {
  kernels::CacheShape shape = decoder.frame().cache->shape();
  shape.strips = {kernels::WindowStrip(0)};
  shape.pool_columns = 0;
  return shape;
}

kernels::ProjectionCache::Options OptionsOf(int sequences, kernels::BlockMemory* memory) {
  kernels::ProjectionCache::Options options;
  options.step_sequences = sequences;
  options.memory = memory;
  return options;
}

// The next token of every run.
class FullPass final : public models::TokenForward {
 public:
  // `cache` null: to be counted.
  FullPass(const LsContext& context, kernels::ProjectionCache* cache, std::vector<TokenRun> runs)
      : context_(context), cache_(cache), runs_(std::move(runs)) {
    kernels::PagedPattern pattern;
    pattern.heads = context.config->heads;
    pattern.tile_rows = context.tile_rows;
    std::vector<kernels::PagedSequence> batch(runs_.size());
    for (size_t i = 0; i < runs_.size(); ++i) {
      batch[i].query_row0 = static_cast<int32_t>(i);
      batch[i].tokens = 1;
      batch[i].start = static_cast<int32_t>(runs_[i].start);
      runs_[i].row0 = static_cast<int64_t>(i);
      logits_to_.push_back(runs_[i].logits);
    }
    plan_ = PlanPaged(pattern, batch);
    if (context.on_device) plan_ = kernels::cuda::CutForDecode(plan_);
  }

  std::span<const TokenRun> runs() const override { return runs_; }
  int layers() const override { return context_.config->layers; }
  bool RepeatsEarlier(int layer) const override { return layer > 0; }

  absl::Status Append() override {
    step_.emplace(cache_);
    return AppendRuns(runs_, *step_);
  }

  void Stage(models::Backend& backend) override {
    const std::vector<int32_t> ids(runs_.size(), kNextId);
    ids_ = ids;
    blocks_.clear();
    offsets_.assign(runs_.size(), 0);
    places_.assign(runs_.size(), {});
    if (step_) {
      const kernels::CacheTable& table = step_->table(CacheStep::kDecode, 0);
      blocks_ = table.blocks;
      offsets_.assign(table.offsets.begin(), table.offsets.end() - 1);
      const auto places = step_->places(CacheStep::kDecode, 0);
      places_.assign(places.begin(), places.end());
    } else {
      for (const TokenRun& run : runs_) {
        blocks_.resize(blocks_.size() + static_cast<size_t>(run.start / kernels::kBlockSlots + 1));
      }
    }
    ids_ref_ = backend.Stage(ids_);
    table_ = StageBlocks(backend, blocks_, offsets_);
    places_ref_ = StagePlaces(backend, cache_, places_);
    plan_ref_ = backend.Stage(plan_);
    plan_ref_.decodes = true;
  }

  void Take(models::Backend& backend) override {
    using enum models::RowType;
    const models::LsLmConfig& config = *context_.config;
    const auto rows = static_cast<int64_t>(runs_.size());
    const auto tail =
        context_.few_rows ? models::Backend::Tail::kNone : models::Backend::Tail::kPanel;
    x_ = backend.Take(rows, config.width, kFloat, tail);
    input_ = backend.compute() == models::Compute::kFp32
                 ? x_
                 : backend.Take(rows, config.width, kCompute, tail);
    parts_ = TakeLongShort(backend, rows, config.width, config.columns(), /*beside=*/true);
    z_ = backend.Take(rows, config.width, kCompute, tail);
    logits_ = TakeDelivered(backend, rows, config.vocab);
    for (Rows* taken : {&x_, &input_, &z_}) taken->few = context_.few_rows;
    parts_ = parts_.Part(0, rows, context_.few_rows);
  }

  void Embed(models::Backend& backend) override {
    models::ops::Embed args;
    args.words = &context_.weights->words;
    args.ids = ids_ref_;
    args.factor = std::sqrt(static_cast<float>(context_.config->width));
    args.norm = &context_.weights->layers[0].norm1;
    args.x = x_;
    args.input = input_;
    backend.Run(args);
  }

  void Layer(models::Backend& backend, int index) override {
    const models::LsLmLayer& layer = context_.weights->layers[static_cast<size_t>(index)];
    const int heads = context_.config->heads;
    const models::StripRef strip = {cache_, 0, index, heads};
    backend.Run(models::ops::ProjectLongShort{layer.project, layer.window_norm, input_,
                                              input_.count, parts_});
    backend.Run(models::ops::Store{strip, parts_.keys, parts_.values, places_ref_});
    const kernels::Source source = CachedSource(backend, strip, table_);
    kernels::Call call = HeadsCall(backend.compute(), parts_.q, z_, heads);
    call.sources = {&source, 1};
    backend.Run(models::ops::Attend{plan_ref_, call});
    models::BlockWeights block;
    block.out = &layer.out;
    block.after_attention = &layer.norm2;
    block.expand = &layer.expand;
    block.contract = &layer.contract;
    const bool last = index + 1 == layers();
    block.after_layer =
        last ? nullptr : &context_.weights->layers[static_cast<size_t>(index) + 1].norm1;
    block.activation = context_.config->activation;
    backend.Run(models::ops::FeedForward{block, {x_, input_, z_}});
  }

  Rows Logits(models::Backend& backend, int64_t first, int64_t count) override {
    backend.Run(models::ops::Deliver{
        context_.weights->logits, input_.Part(first, count, context_.few_rows),
        logits_.First(count), std::span(logits_to_).subspan(static_cast<size_t>(first))});
    return logits_.First(count);
  }
  void End() override { step_->End(); }

 private:
  const LsContext context_;
  kernels::ProjectionCache* const cache_;
  std::vector<TokenRun> runs_;
  kernels::Plan plan_;
  std::optional<kernels::CacheStep> step_;
  std::vector<float*> logits_to_;
  std::vector<int32_t> ids_, blocks_, offsets_;
  std::vector<kernels::CachePlace> places_;
  models::IndexRef ids_ref_;
  models::BlocksRef table_;
  models::PlacesRef places_ref_;
  models::PlanRef plan_ref_;
  Rows x_, input_, z_, logits_;
  models::LongShortRows parts_;
};

std::vector<TokenRun> RunsAt(int64_t start, int sequences) {
  std::vector<TokenRun> runs(static_cast<size_t>(sequences));
  for (TokenRun& run : runs) {
    run.group = CacheStep::kDecode;
    run.ids = {&kNextId, 1};
    run.start = start;
    run.wanted = 1;
  }
  return runs;
}

}  // namespace

int64_t FullDecoder::CacheBytes(const models::ForwardDecoder& decoder, int sequences,
                                int64_t tokens) {
  const kernels::CacheShape shape = ShapeOf(decoder);
  return kernels::ProjectionCache::MemoryBytes(shape, OptionsOf(sequences, nullptr),
                                               sequences * shape.SequenceBytes(0, tokens, 1));
}

FullDecoder::FullDecoder(const models::ForwardDecoder& decoder, int sequences, int64_t tokens)
    : decoder_(decoder), budget_(sequences * ShapeOf(decoder).SequenceBytes(0, tokens, 1)) {
  if (decoder.placement() != nullptr) {
    const models::Device& device = decoder.placement()->device();
    blocks_ = std::make_unique<kernels::cuda::DeviceBlocks>(device.api(), device.index(),
                                                            device.stream());
    FullPass largest(ContextOf(decoder), nullptr, RunsAt(tokens - 1, sequences));
    models::DeviceBackend count(decoder.frame().compute);
    CountForward(largest, models::kDeviceLogitRows, count);
    const models::ForwardNeed need = count.need();
    // A quarter more than counted, since the first keys of spans move with the text.
    workspace_ = std::make_unique<models::DeviceTokenWorkspace>(
        device, models::DeviceTokenNeed{need.lists * 5 / 4 + 4096, need.memory() * 5 / 4 + 4096},
        decoder.vocab_size());
  }
  cache_ = kernels::ProjectionCache::Create(ShapeOf(decoder), OptionsOf(sequences, blocks_.get()),
                                            &budget_);
  if (cache_ == nullptr) throw models::DeviceError("no room for a full cache");
}

FullDecoder::~FullDecoder() = default;

std::vector<float> FullDecoder::Step(std::span<models::CachedSequence* const> sequences) {
  const int64_t vocab = decoder_.vocab_size();
  std::vector<float> logits(sequences.size() * static_cast<size_t>(vocab));
  std::vector<TokenRun> runs = RunsAt(0, static_cast<int>(sequences.size()));
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].sequence = sequences[i];
    runs[i].start = sequences[i]->tokens();
    runs[i].logits = logits.data() + static_cast<int64_t>(i) * vocab;
  }
  auto forward = std::make_unique<FullPass>(ContextOf(decoder_), cache_.get(), std::move(runs));
  std::unique_ptr<models::TokenPass> pass;
  if (blocks_) {
    pass = std::make_unique<models::DeviceTokenPass>(
        std::move(forward), decoder_.placement()->device(), decoder_.frame().compute, *blocks_,
        *workspace_, nullptr);
  } else {
    pass = std::make_unique<models::HostTokenPass>(std::move(forward), decoder_.host(), scratch_,
                                                   nullptr);
  }
  if (!pass->Begin().ok()) {
    std::fprintf(stderr, "no room for another token\n");
    std::exit(1);
  }
  while (pass->Advance()) {
  }
  return logits;
}

}  // namespace longview::bench
