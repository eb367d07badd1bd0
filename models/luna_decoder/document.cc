#include "models/luna_decoder/document.h"

#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cache/cache_step.h"
#include "models/luna/placement.h"
#include "models/luna_decoder/document_pass.h"

namespace longview::models {
namespace {

EncoderSequence WithAllRows(EncoderSequence document) {
  document.wanted.resize(document.ids.size());
  std::iota(document.wanted.begin(), document.wanted.end(), 0);
  return document;
}

int64_t StateBytes(const LunaDecoderContext& context, const EncoderSequence& document) {
  const int64_t rows = document.wanted.empty() ? 0 : document.tokens();
  return rows * context.config->width * static_cast<int64_t>(sizeof(float));
}

struct Counted {
  OpsNeed need;
  EncoderWork work;
};

Counted Count(const LunaDecoderContext& context, const EncoderSequence& document) {
  const EncoderSequence whole = WithAllRows(document);
  const std::array<const EncoderSequence*, 1> one = {&whole};
  LunaDocumentPass pass(context, one, {}, !document.wanted.empty());
  const auto on = [&](CountOps&& ops) -> Counted {
    CountPass(pass, ops);
    return {ops.need(), ops.work()};
  };
  return context.seat != nullptr ? on(DeviceCount(context.frame.compute))
                                 : on(HostCount(*context.host));
}

}  // namespace

LunaDocument::LunaDocument(const LunaDecoderContext& context, const EncoderSequence& document,
                           EncoderTimes* times)
    : context_(context),
      document_(WithAllRows(document)),
      wants_states_(!document.wanted.empty()),
      rows_(ActiveRows(*context.config->encoder, document)),
      times_(times),
      cache_(context.documents),
      held_(*context.budget) {}

void LunaDocument::EndReading() {
  pass_.reset();
  held_.Keep(wants_states_ ? StateBytes(context_, document_) : 0);
}

void LunaDocument::Drop() {
  run_.reset();
  pass_.reset();
  held_.Keep(0);
}

LunaDocument::Need LunaDocument::NeedOf(const LunaDecoderContext& context,
                                        const EncoderSequence& document) {
  const Counted counted = Count(context, document);
  const auto kept = static_cast<double>(context.documents->shape().SequenceBytes(0, 1, 1));
  const auto states = static_cast<double>(StateBytes(context, document));
  // A device's memory was taken when the model loaded; what is left comes back.
  if (context.seat != nullptr) return {kept, states, counted.work};
  return {kept + static_cast<double>(counted.need.memory()) + states,
          static_cast<double>(counted.need.transient), counted.work};
}

DeviceRunBytes LunaDocument::MostBytes(const LunaDecoderContext& context, int tokens) {
  EncoderSequence longest;
  longest.ids.resize(static_cast<size_t>(tokens));
  longest.roles.assign(longest.ids.size(), kernels::kLocalToken);
  PlaceLunaTokens(context.config->encoder->pad, longest);
  const EncoderSequence whole = WithAllRows(std::move(longest));
  const std::array<const EncoderSequence*, 1> one = {&whole};
  auto pass = std::make_unique<LunaDocumentPass>(context, one, LunaDocumentMemory(), true);
  return DevicePassPart(std::move(pass), context.seat->device(), context.frame.compute)
      .most_bytes();
}

absl::Status LunaDocument::TakeMemory() {
  kernels::CacheStep step(context_.documents);
  const int32_t any = 0;
  if (!step.Append(kernels::CacheStep::kPrefill, &cache_, {&any, 1})) {
    return absl::ResourceExhaustedError("cache: no memory for a document");
  }
  memory_ = LunaDocumentOf(*context_.documents, cache_);
  return absl::OkStatus();
}

std::unique_ptr<LunaDocumentPass> LunaDocument::MakePass() const {
  const std::array<const EncoderSequence*, 1> one = {&document_};
  return std::make_unique<LunaDocumentPass>(context_, one, memory_, wants_states_);
}

absl::Status LunaDocument::BeginOnHost() {
  auto pass = MakePass();
  const auto scratch = static_cast<int64_t>(HostPass::ScratchBytes(*pass, *context_.host));
  if (!held_.Take(scratch + (wants_states_ ? StateBytes(context_, document_) : 0))) {
    return absl::ResourceExhaustedError("cache: no memory to read a document");
  }
  pass_ = std::make_unique<HostPass>(std::move(pass), *context_.host, keeper_, times_);
  return absl::OkStatus();
}

absl::Status LunaDocument::Begin(int tokens) {
  const bool first = read_ == 0;
  if (first) {
    if (absl::Status status = TakeMemory(); !status.ok()) return status;
  }
  read_ += tokens;
  if (context_.seat == nullptr) return first ? BeginOnHost() : absl::OkStatus();
  if (unencoded() > 0) return absl::OkStatus();
  DecoderSeat& seat = *context_.seat;
  run_.emplace(seat.device(), *seat.documents(), static_cast<DeviceItems&>(*this), times_);
  return absl::OkStatus();
}

absl::Status LunaDocument::Advance(bool* more) {
  if (context_.seat != nullptr) {
    *more = run_ && run_->Advance();
    if (!*more) run_.reset();
    return absl::OkStatus();
  }
  const int64_t layers = int64_t{context_.config->encoder->layers} + context_.config->layers;
  const int64_t until = layers * read_ / document_.tokens();
  if (layers_done_ < until) {
    (void)pass_->Advance();
    ++layers_done_;
  }
  *more = layers_done_ < until;
  if (layers_done_ < layers) return absl::OkStatus();
  if (wants_states_) KeepStates(reinterpret_cast<const std::byte*>(pass_->Rows(0)));
  EndReading();
  return absl::OkStatus();
}

std::string LunaDocument::NameOf(int) const {
  return absl::StrCat("a document of ", document_.tokens(), " tokens");
}

std::unique_ptr<DevicePart> LunaDocument::Plan(std::span<const int>) const {
  return std::make_unique<DevicePassPart>(MakePass(), context_.seat->device(),
                                          context_.frame.compute);
}

void LunaDocument::KeepStates(const std::byte* rows) {
  if (wants_states_) states_.assign(rows, rows + StateBytes(context_, document_));
}

}  // namespace longview::models
