#include "models/generation/passes/forward_decoder.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/span/launch_shape.h"
#include "models/cost/best_rates.h"
#include "models/device/placement.h"
#include "models/generation/passes/document_step.h"
#include "models/generation/passes/host_token_pass.h"
#include "models/layers/span_rows.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

PassStep::Rules RulesOf(const TokenModel& model, bool on_device) {
  PassStep::Rules rules = {model.family(), model.vocab()};
  if (on_device) rules = DeviceRules(model.family(), model.vocab());
  rules.boundary = model.boundary();
  return rules;
}

}  // namespace

class ForwardDecoder::Stage final : public EncoderStage {
 public:
  explicit Stage(ForwardDecoder& decoder)
      : decoder_(decoder), context_{decoder.model_->source(), &decoder.frame_,   &decoder.host_,
                                    decoder.placement_.get(), &decoder.scratch_, nullptr} {}

  const SourceModel& model() const { return *context_.model; }
  // Before the first document. Borrowed.
  void set_budget(kernels::CacheBudget& budget) { context_.budget = &budget; }
  DeviceRunBytes MostBytes() const { return PassDocument::MostBytes(context_); }

  const SequenceRules& rules() const override { return model().rules(); }
  int max_tokens() const override { return model().max_tokens(); }
  int width() const override { return model().width(); }

  std::unique_ptr<DecoderSequence> Open(const EncoderSequence& document) override {
    return std::make_unique<DocumentSequence>(
        kernels::CacheSequence(decoder_.cache_.get()),
        std::make_shared<PassDocument>(context_, document, decoder_.times_));
  }
  DocumentCost Cost(const EncoderSequence& document) const override {
    const PassDocument::Need need = PassDocument::NeedOf(context_, document);
    const EncoderRates rates = rates_.empty() ? EncoderRates() : rates_.rates();
    return {need.bytes, need.workspace_bytes, rates.Seconds(need.work), need.work.MultiplyAdds()};
  }
  double AttendSeconds(int64_t tokens) const override {
    return AttendMultiplyAdds(tokens) * decoder_.costs_->rates().decode_attention;
  }
  double AttendMultiplyAdds(int64_t tokens) const override { return model().AttendWork(tokens); }

  // A document to calibrate with, up to 512 tokens, for which there is room; empty: there is none.
  EncoderSequence Sample(double room) const;
  // A sequence over it that has read it; the rates of reading have another moment.
  absl::StatusOr<std::unique_ptr<DecoderSequence>> ReadSample(const EncoderSequence& sample);

 private:
  ForwardDecoder& decoder_;
  SourceContext context_;
  BestRates rates_;
};

EncoderSequence ForwardDecoder::Stage::Sample(double room) const {
  EncoderSequence sample;
  for (int tokens = std::min(512, max_tokens()); tokens > 0; tokens /= 2) {
    sample = EncoderSequence();
    for (int64_t i = 0; i < tokens; ++i) {
      sample.ids.push_back(static_cast<int32_t>((i * 7919 + 11) % rules().facts().vocab));
    }
    sample.roles.assign(sample.ids.size(), kernels::kLocalToken);
    if (rules().Place("sample", sample).ok() && Cost(sample).bytes < room) return sample;
  }
  return EncoderSequence();
}

absl::StatusOr<std::unique_ptr<DecoderSequence>> ForwardDecoder::Stage::ReadSample(
    const EncoderSequence& sample) {
  RunTimes times;
  decoder_.times_ = &times;
  std::unique_ptr<DecoderSequence> sequence = Open(sample);
  DecoderFeed feed{.sequence = sequence.get(), .tokens = {}, .wanted = WantedLogits::kNone};
  feed.encode = sample.tokens();
  const absl::StatusOr<double> seconds = TimeStep(decoder_, feed);
  decoder_.times_ = nullptr;
  if (!seconds.ok()) return seconds.status();
  const EncoderWork work = PassDocument::NeedOf(context_, sample).work;
  rates_.Add(work, times, work, *seconds);
  return sequence;
}

DeviceTokenTexts TextsOf(const TokenModel& model, int max_tokens) {
  DeviceTokenTexts texts = max_tokens;
  texts.boundary = model.boundary();
  texts.ends = model.ends();
  return texts;
}

ForwardDecoder::ForwardDecoder(std::unique_ptr<TokenModel> model, Compute compute,
                               const Limits& limits, std::unique_ptr<Device> device)
    : model_(std::move(model)),
      rules_(RulesOf(*model_, device != nullptr)),
      max_tokens_(limits.max_tokens),
      host_(model_->Host(device != nullptr ? Compute::kFp32 : compute, pool_)),
      placement_(device != nullptr ? std::make_unique<DecoderPlacement>(std::move(device), compute)
                                   : nullptr),
      stage_(model_->source() != nullptr ? std::make_unique<Stage>(*this) : nullptr) {
  frame_.compute = compute;
  frame_.tile_rows = placement_ ? kernels::cuda::kDeviceTileRows : host_.tile_rows();
}

absl::StatusOr<std::unique_ptr<ForwardDecoder>> ForwardDecoder::Create(
    std::unique_ptr<TokenModel> model, const std::string& origin, WeightFormat format,
    const Limits& limits, std::unique_ptr<Device> device) {
  std::unique_ptr<ForwardDecoder> decoder;
  RETURN_IF_ERROR(LoadInTurn(origin, device.get(), [&] {
    decoder.reset(new ForwardDecoder(std::move(model), format.compute, limits, std::move(device)));
    return decoder->Load(origin, format, limits.room);
  }));
  return decoder;
}

ForwardDecoder::~ForwardDecoder() = default;

absl::Status ForwardDecoder::Load(const std::string& origin, WeightFormat format,
                                  const CacheRoom& room) {
  const kernels::DType blocks = placement_ ? SpanType(frame_.compute) : host_.block_type();
  std::vector<kernels::CacheShape> shapes = {model_->Shape(blocks)};
  if (stage_) shapes.push_back(stage_->model().Shape(blocks));
  // Documents are never forked.
  kernels::ProjectionCache::Options options = StepCacheOptions(), document_options;
  absl::Status loaded;
  if (placement_) {
    for (kernels::CacheShape& shape : shapes) shape.form = kernels::BlockForm::kRows;
    loaded = LoadOnDevice(origin, shapes, room);
    options = DeviceCacheOptions(&placement_->blocks());
    document_options.memory = &placement_->blocks();
  } else {
    loaded = model_->Load(format, nullptr);
  }
  if (!loaded.ok()) return loaded;
  model_->Loaded(host_, blocks);
  CountCosts(shapes[0]);
  budget_ = room.Open();
  cache_ = kernels::ProjectionCache::Create(shapes[0], options, budget_.get());
  if (cache_ == nullptr) return NoAddresses(origin, *budget_);
  frame_.cache = cache_.get();
  if (!stage_) return absl::OkStatus();
  documents_ = kernels::ProjectionCache::Create(shapes[1], document_options, budget_.get());
  if (documents_ == nullptr) return NoAddresses(origin, *budget_);
  frame_.documents = documents_.get();
  stage_->set_budget(*budget_);
  return absl::OkStatus();
}

void ForwardDecoder::CountCosts(const kernels::CacheShape& shape) {
  CountedCosts::Terms terms = {shape,
                               frame_.compute,
                               placement_ ? nullptr : &host_,
                               vocab_size(),
                               max_tokens(),
                               model_->prefill_alignment(),
                               model_->CostliestPosition(max_tokens())};
  if (stage_) terms.attend_work = stage_->model().AttendWork(stage_->max_tokens());
  terms.table_bytes = [this](int64_t tokens) { return model_->TableBytes(tokens); };
  const auto count = [this](std::vector<TokenRun> runs, int64_t logit_rows) {
    return model_->Forward({frame_.compute, frame_.tile_rows}, std::move(runs), logit_rows);
  };
  costs_ = std::make_unique<CountedCosts>(count, std::move(terms));
}

absl::Status ForwardDecoder::LoadOnDevice(const std::string& origin,
                                          std::vector<kernels::CacheShape> caches,
                                          const CacheRoom& room) {
  const auto load = [&](std::optional<WeightFormat> format, DeviceStore& store) {
    return model_->Load(format, &store);
  };
  const auto make = [&](std::vector<TokenRun> runs) {
    return model_->Forward(frame_, std::move(runs), kDeviceLogitRows);
  };
  DecoderPlacement::Claims claims = {vocab_size(), TextsOf(*model_, max_tokens()),
                                     std::move(caches), room, nullptr};
  if (stage_) claims.document = [&] { return stage_->MostBytes(); };
  return placement_->Load(origin, claims, load, make);
}

int ForwardDecoder::prefill_alignment() const {
  if (!stage_) return model_->prefill_alignment();
  return placement_ ? stage_->max_tokens() : stage_->model().prefill_alignment();
}

EncoderStage* ForwardDecoder::encoder() { return stage_.get(); }

std::unique_ptr<DecoderSequence> ForwardDecoder::Open(std::span<const int32_t> prompt,
                                                      uint64_t space) {
  if (!model_->finds_prompts()) {
    return std::make_unique<DocumentSequence>(kernels::CacheSequence(cache_.get()), nullptr);
  }
  return std::make_unique<CachedSequence>(
      cache_->Open(prompt, kernels::Reuse::kPrefillMade, space));
}

std::unique_ptr<DecoderStep> ForwardDecoder::Begin(std::span<const DecoderFeed> feeds) {
  const auto make = [this](std::vector<TokenRun> runs) { return MakePass(std::move(runs)); };
  if (stage_) return std::make_unique<DocumentStep>(rules_, feeds, make);
  return std::make_unique<PassStep>(rules_, feeds, make);
}

std::unique_ptr<TokenPass> ForwardDecoder::MakePass(std::vector<TokenRun> runs) {
  const int64_t logit_rows = placement_ ? kDeviceLogitRows : WantedRows(runs);
  auto forward = model_->Forward(frame_, std::move(runs), logit_rows);
  if (placement_) return placement_->Run(std::move(forward), times_);
  return std::make_unique<HostTokenPass>(std::move(forward), host_, scratch_, times_);
}

absl::Status ForwardDecoder::WarmUp() {
  RunTimes* const kept = times_;
  Calibration calibration = {*this, *costs_, static_cast<double>(budget_->Room()),
                             [this](RunTimes* times) { times_ = times; }};
  EncoderSequence sample;
  if (stage_) {
    sample = stage_->Sample(calibration.capacity);
    if (sample.ids.empty()) return absl::OkStatus();
    calibration.capacity -= stage_->Cost(sample).bytes;
    calibration.attend_work = stage_->model().AttendWork(sample.tokens());
    calibration.open = [&] { return stage_->ReadSample(sample); };
  }
  const absl::Status status = CalibrateDecoder(calibration);
  times_ = kept;
  return status;
}

CacheUse ForwardDecoder::cache() const { return UseOf(*budget_); }

}  // namespace longview::models
