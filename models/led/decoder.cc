#include "models/led/decoder.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "kernels/cuda/span/launch_shape.h"
#include "models/encoder/best_rates.h"
#include "models/generation/cache_room.h"
#include "models/generation/document_sequence.h"
#include "models/generation/document_step.h"
#include "models/generation/host_token_pass.h"
#include "models/led/document.h"
#include "models/led/whole_document.h"
#include "models/longformer/pass.h"
#include "models/ops/host_ops.h"
#include "models/stack/pass.h"

namespace longview::models {
namespace {

constexpr int kWarmUpTokens = 8;  // Decoded.

const StackDocument* DocumentOfRun(const TokenRun& run) {
  const auto* sequence = static_cast<const DocumentSequence*>(run.sequence);
  return &static_cast<const LedDocument*>(sequence->document())->keys();
}

}  // namespace

LedDecoder::LedDecoder(LedConfig config, Checkpoint checkpoint, Compute compute,
                       const Limits& limits, std::unique_ptr<Device> device)
    : config_(std::move(config)),
      checkpoint_(std::move(checkpoint)),
      limits_(limits),
      rules_(config_),
      seat_(device != nullptr ? std::make_unique<DecoderSeat>(std::move(device), compute)
                              : nullptr) {
  context_.config = &config_;
  context_.weights = &weights_;
  context_.seat = seat_.get();
  const Compute on_host = seat_ ? Compute::kFp32 : compute;
  context_.encoder = LongformerContext(config_.encoder, weights_.encoder, on_host, pool_);
  context_.decoder.config = &config_.decoder;
  context_.decoder.weights = &weights_.decoder;
  context_.decoder.compute = compute;
  context_.decoder.tile_rows =
      seat_ ? kernels::cuda::kDeviceTileRows : context_.encoder.tile_rows();
}

absl::StatusOr<std::unique_ptr<LedDecoder>> LedDecoder::Create(LedConfig config,
                                                               Checkpoint checkpoint,
                                                               const std::string& origin,
                                                               Compute compute,
                                                               const Limits& limits,
                                                               std::unique_ptr<Device> device) {
  std::unique_ptr<LedDecoder> decoder;
  absl::Status loaded;
  const absl::Status guarded = GuardDevice(origin, [&] {
    decoder.reset(new LedDecoder(std::move(config), std::move(checkpoint), compute, limits,
                                 std::move(device)));
    loaded = decoder->Load(origin);
  });
  if (!guarded.ok()) return guarded;
  if (!loaded.ok()) return loaded;
  return decoder;
}

absl::Status LedDecoder::Load(const std::string& origin) {
  StackContext& stack = context_.decoder;
  const kernels::DType blocks =
      seat_ ? SpanType(stack.compute) : context_.encoder.block_type();
  kernels::CacheShape shape = StackCacheShape(config_.decoder, blocks);
  kernels::CacheShape documents = DocumentCacheShape(config_.decoder, blocks);
  kernels::ProjectionCache::Options options = StepCacheOptions(), document_options;
  if (seat_) {
    shape.form = documents.form = kernels::BlockForm::kRows;
    if (absl::Status status = LoadOnDevice(origin, shape, documents); !status.ok()) return status;
    options = DeviceCacheOptions(&seat_->blocks());
    document_options.memory = &seat_->blocks();
  } else {
    absl::StatusOr<LedWeights> weights =
        LoadLedWeights(config_, checkpoint_, origin, stack.compute);
    if (!weights.ok()) return weights.status();
    weights_ = *std::move(weights);
    stack.few_rows = weights_.decoder.packs_rows();
  }
  budget_ = limits_.room.Open();
  context_.budget = budget_.get();
  // Documents are never forked, nor published.
  documents_ = kernels::ProjectionCache::Create(documents, document_options, budget_.get());
  cache_ = kernels::ProjectionCache::Create(shape, options, budget_.get());
  if (cache_ == nullptr || documents_ == nullptr) {
    return NoAddresses(origin, *budget_);
  }
  stack.cache = cache_.get();
  stack.documents = documents_.get();
  costs_ = std::make_unique<StackCosts>(
      stack, shape,
      StackRoom{seat_ ? nullptr : &context_.encoder, config_.max_output, limits_.document});
  return absl::OkStatus();
}

absl::Status LedDecoder::LoadOnDevice(const std::string& origin, const kernels::CacheShape& shape,
                                      const kernels::CacheShape& documents) {
  const Device::Turn turn(seat_->device());
  context_.decoder.few_rows = true;
  const auto load = [&](std::optional<Compute> compute, DeviceStore& store) {
    absl::StatusOr<LedWeights> weights =
        LoadLedWeights(config_, checkpoint_, origin, compute, &store);
    if (weights.ok()) weights_ = *std::move(weights);
    return weights.status();
  };
  // Every run attends to a document of its own.
  std::vector<StackDocument> read;
  const auto make = [&](std::vector<TokenRun> runs) {
    read.assign(runs.size(), StackDocument{nullptr, limits_.document});
    size_t next = 0;
    return std::make_unique<StackPass>(context_.decoder, std::move(runs), kDeviceLogitRows,
                                       [&](const TokenRun&) { return &read[next++]; });
  };
  const DecoderSeat::Claims claims = {
      config_.decoder.vocab,
      config_.max_output,
      {shape, documents},
      limits_.room,
      [&] { return WholeDocument::MostBytes(context_, limits_.document); }};
  return seat_->Load(origin, claims, load, make);
}

std::unique_ptr<DecoderSequence> LedDecoder::Open(std::span<const int32_t>, uint64_t) {
  return nullptr;
}

std::unique_ptr<DecoderSequence> LedDecoder::Stage::Open(const EncoderSequence& document) {
  return std::make_unique<DocumentSequence>(
      kernels::CacheSequence(decoder_.cache_.get()),
      LedDocument::Open(decoder_.context_, document, decoder_.scratch_, decoder_.times_));
}

DocumentCost LedDecoder::Stage::Cost(const EncoderSequence& document) const {
  const LedContext& context = decoder_.context_;
  return {LedDocument::Bytes(context, document),
          static_cast<double>(LedDocument::WorkspaceBytes(context, document)),
          decoder_.encoder_rates_.Seconds(decoder_.WorkOf(document))};
}

double LedDecoder::Stage::AttendSeconds(int64_t tokens) const {
  return decoder_.costs_->AttendSeconds(tokens);
}

std::unique_ptr<DecoderStep> LedDecoder::Begin(std::span<const DecoderFeed> feeds) {
  const StackConfig& stack = config_.decoder;
  const PassStep::Rules rules = seat_ ? DeviceRules(stack.family, stack.vocab)
                                      : PassStep::Rules{stack.family, stack.vocab};
  return std::make_unique<DocumentStep>(
      rules, feeds, [this](std::vector<TokenRun> runs) { return MakePass(std::move(runs)); });
}

std::unique_ptr<TokenPass> LedDecoder::MakePass(std::vector<TokenRun> runs) {
  const int64_t logit_rows = seat_ ? kDeviceLogitRows : WantedRows(runs);
  auto pass =
      std::make_unique<StackPass>(context_.decoder, std::move(runs), logit_rows, DocumentOfRun);
  if (seat_) return seat_->Run(std::move(pass), times_);
  return std::make_unique<HostTokenPass>(std::move(pass), context_.encoder, scratch_, times_);
}

CacheUse LedDecoder::cache() const { return UseOf(*budget_); }

// Every row of the last layer is read; then each decoder layer makes keys and values of it.
EncoderWork LedDecoder::WorkOf(const EncoderSequence& document) const {
  EncoderSequence all;
  all.ids = document.ids;
  all.roles = document.roles;
  all.wanted.resize(document.ids.size());
  std::iota(all.wanted.begin(), all.wanted.end(), 0);
  const std::array<const EncoderSequence*, 1> one = {&all};
  LongformerPass pass(config_.encoder, weights_.encoder, context_.encoder.compute, one,
                      context_.encoder.tile_rows());
  HostCount count(context_.encoder);  // Wherever it runs, the work is the same.
  CountPass(pass, count);
  EncoderWork work = count.work();
  const double n = document.tokens(), width = config_.decoder.width;
  work.linear += 2 * n * width * width * config_.decoder.layers();
  work.rows += 2 * n * width * config_.decoder.layers();
  return work;
}

absl::Status LedDecoder::WarmUp() {
  constexpr int kDocument = 512;
  int tokens = std::min(kDocument, limits_.document);
  const auto needed = [&] {
    EncoderSequence document;
    document.ids.resize(static_cast<size_t>(tokens));
    document.roles.assign(document.ids.size(), kernels::kLocalToken);
    return LedDocument::Bytes(context_, document) + costs_->StateBytes(0, kWarmUpTokens + 1, 1);
  };
  while (tokens > 0 && needed() > static_cast<double>(budget_->Room())) tokens /= 2;
  if (tokens == 0 || config_.max_output <= kWarmUpTokens) return absl::OkStatus();
  EncoderRates encoder;
  DecoderRates decoder;
  absl::Status status = Calibrate(tokens, encoder, decoder);
  // The very first run pays for code generation.
  if (status.ok() && !costs_->measured()) status = Calibrate(tokens, encoder, decoder);
  times_ = nullptr;
  if (!status.ok()) return status;
  encoder_rates_ = costs_->measured() ? BestOf(encoder_rates_, encoder) : encoder;
  costs_->AddMoment(decoder);
  return absl::OkStatus();
}

// Rates of the encoder from a document long enough to fill panels, of decoding from single tokens
// behind it: what they take beyond attention is the reading of the weights. The start of an output
// is short; what reading it takes is the encoder's.
absl::Status LedDecoder::Calibrate(int tokens, EncoderRates& encoder, DecoderRates& decoder) {
  EncoderSequence document;
  for (int i = 0; i < tokens; ++i) {
    document.ids.push_back(static_cast<int32_t>((int64_t{i} * 7919 + 11) % config_.decoder.vocab));
    document.positions.push_back(i);
  }
  document.roles.assign(document.ids.size(), kernels::kLocalToken);
  EncoderTimes reading, decoding;
  times_ = &reading;
  const std::unique_ptr<DecoderSequence> sequence = stage_.Open(document);
  DecoderFeed feed;
  feed.sequence = sequence.get();
  feed.encode = tokens;
  feed.wanted = WantedLogits::kNone;
  if (absl::Status status = TimeStep(*this, feed).status(); !status.ok()) return status;
  const EncoderWork work = WorkOf(document);
  encoder.fixed_seconds = 0;
  encoder.linear_seconds = reading.linears / work.linear;
  encoder.attention_seconds = reading.attention / std::max(work.attention, 1.0);
  encoder.row_seconds = reading.rest / work.rows;
  times_ = &decoding;
  feed.encode = 0;
  double seconds = 0, attention = 0;
  for (int t = 0; t <= kWarmUpTokens; ++t) {
    feed.tokens = std::span(&config_.decoder_start, 1);
    feed.phase = t == 0 ? DecoderPhase::kPrefill : DecoderPhase::kDecode;
    feed.wanted = WantedLogits::kLast;
    if (t == 1) decoding = EncoderTimes();
    const absl::StatusOr<double> step = TimeStep(*this, feed);
    if (!step.ok()) return step.status();
    if (t == 0) continue;
    seconds += *step;
    attention += costs_->AttentionWork(t) + StackDocumentWork(config_.decoder, tokens);
  }
  decoder.linear_seconds = encoder.linear_seconds;
  decoder.prefill_attention = encoder.attention_seconds;
  decoder.row_seconds = encoder.row_seconds;
  decoder.decode_attention = decoding.attention / attention;
  decoder.step_seconds = (seconds - decoding.attention) / kWarmUpTokens;
  return absl::OkStatus();
}

}  // namespace longview::models
