#include "models/generation/passes/pass_document.h"

#include <array>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "kernels/cache/cache_step.h"
#include "models/forward/forward_part.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

EncoderSequence WithAllRows(EncoderSequence document) {
  document.wanted.resize(document.ids.size());
  std::iota(document.wanted.begin(), document.wanted.end(), 0);
  return document;
}

int64_t StateBytesOf(const SourceContext& context, const EncoderSequence& document) {
  const int64_t rows = document.wanted.empty() ? 0 : document.tokens();
  return rows * context.model->width() * static_cast<int64_t>(sizeof(float));
}

}  // namespace

PassDocument::PassDocument(const SourceContext& context, const EncoderSequence& document,
                           RunTimes* times)
    : context_(context),
      document_(WithAllRows(document)),
      wants_states_(!document.wanted.empty()),
      times_(times),
      kept_(context.frame->documents),
      held_(*context.budget) {}

PassDocument::Need PassDocument::NeedOf(const SourceContext& context,
                                        const EncoderSequence& document) {
  const SourceModel& model = *context.model;
  const EncoderSequence whole = WithAllRows(document);
  const std::array<const EncoderSequence*, 1> one = {&whole};
  const auto forward = model.Forward(*context.frame, one, nullptr, !document.wanted.empty());
  const kernels::CacheShape& shape = context.frame->documents->shape();
  const auto kept = static_cast<double>(shape.SequenceBytes(0, model.Slots(whole), 1));
  const auto states = static_cast<double>(StateBytesOf(context, document));
  if (context.placement != nullptr) {
    // A device's memory was taken when the model loaded; what is left comes back.
    return {kept, states, CountOnDevice(*forward, context.frame->compute).work};
  }
  const ForwardCount count = CountOnHost(*forward, *context.host);
  const SourceNeed need = model.HostNeed(*context.host, whole, count.need);
  return {kept + static_cast<double>(need.held) + states, static_cast<double>(need.workspace),
          count.work};
}

DeviceRunBytes PassDocument::MostBytes(const SourceContext& context) {
  return context.model->MostBytes([&](EncoderPass::Sequences document) {
    auto forward = context.model->Forward(*context.frame, document, nullptr, true);
    return ForwardPart(std::move(forward), context.placement->device(), context.frame->compute)
        .most_bytes();
  });
}

int64_t PassDocument::StateBytes() const {
  return wants_states_ ? StateBytesOf(context_, document_) : 0;
}

absl::Status PassDocument::TakeMemory() {
  // Nobody finds it by its tokens.
  const std::vector<int32_t> slots(static_cast<size_t>(context_.model->Slots(document_)));
  kernels::CacheStep step(context_.frame->documents);
  if (!step.Append(kernels::CacheStep::kPrefill, &kept_, slots)) {
    return absl::ResourceExhaustedError("cache: no memory for a document");
  }
  if (context_.placement != nullptr) return absl::OkStatus();
  states_.resize(static_cast<size_t>(StateBytes()));
  float* const states = wants_states_ ? reinterpret_cast<float*>(states_.data()) : nullptr;
  reader_ = context_.model->Read(
      {*context_.frame, document_, kept_, states, *context_.host, *context_.scratch, times_});
  if (!held_.Take(reader_->held_bytes() + StateBytes())) {
    return absl::ResourceExhaustedError("cache: no memory to read a document");
  }
  return absl::OkStatus();
}

absl::Status PassDocument::Begin(int tokens) {
  if (read_ == 0) {
    RETURN_IF_ERROR(TakeMemory());
  }
  read_ += tokens;
  if (context_.placement == nullptr || unencoded() > 0) return absl::OkStatus();
  DecoderPlacement& placement = *context_.placement;
  run_.emplace(placement.device(), *placement.documents(), static_cast<DeviceItems&>(*this),
               times_);
  return absl::OkStatus();
}

bool PassDocument::Advance() {
  const bool more = reader_ ? reader_->Advance(read_) : run_ && run_->Advance();
  if (more || unencoded() > 0) return more;
  run_.reset();
  if (reader_) held_.Keep(StateBytes());
  reader_.reset();
  return false;
}

void PassDocument::Drop() {
  run_.reset();
  reader_.reset();
  held_.Keep(0);
}

std::string PassDocument::NameOf(int) const {
  return absl::StrCat("a document of ", document_.tokens(), " tokens");
}

std::unique_ptr<DevicePart> PassDocument::Plan(std::span<const int>) const {
  const std::array<const EncoderSequence*, 1> one = {&document_};
  return std::make_unique<ForwardPart>(
      context_.model->Forward(*context_.frame, one, &kept_, wants_states_),
      context_.placement->device(), context_.frame->compute);
}

void PassDocument::Keep(std::span<const int>, const std::byte* results) {
  if (wants_states_) states_.assign(results, results + StateBytes());
}

}  // namespace longview::models
