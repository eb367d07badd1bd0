#include "models/led/whole_document.h"

#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/encoder/pass_batch.h"
#include "models/led/document_pass.h"
#include "models/longformer/longest_document.h"

namespace longview::models {
namespace {

EncoderSequence WantingAll(EncoderSequence document) {
  document.wanted.resize(document.ids.size());
  std::iota(document.wanted.begin(), document.wanted.end(), 0);
  return document;
}

std::unique_ptr<DevicePassPart> PartOf(const LedContext& context,
                                       RaggedBatch::Sequences document, const KeyRows& keys,
                                       bool brings_states) {
  return std::make_unique<DevicePassPart>(
      std::make_unique<LedDocumentPass>(context, document, keys, brings_states),
      context.seat->device(), context.decoder.compute);
}

}  // namespace

WholeDocument::WholeDocument(const LedContext& context, EncoderSequence document,
                             EncoderTimes* times)
    : LedDocument(context, std::move(document)), whole_(WantingAll(document_)), times_(times) {}

DeviceRunBytes WholeDocument::MostBytes(const LedContext& context, int tokens) {
  KeyRows keys;
  keys.rows.resize(static_cast<size_t>(tokens));
  keys.places.resize(static_cast<size_t>(tokens));
  DeviceRunBytes most = LongestLongformerBytes(
      context.config->encoder, tokens, [&](RaggedBatch::Sequences document) {
        return PartOf(context, document, keys, /*brings_states=*/true)->most_bytes();
      });
  most.lists += kernels::AlignUp(keys.rows.size() * sizeof(int32_t)) +
                kernels::AlignUp(keys.places.size() * sizeof(kernels::cuda::CacheRowPlace));
  return most;
}

absl::Status WholeDocument::Begin(int tokens) {
  read_ += tokens;
  if (unencoded() > 0) return absl::OkStatus();
  if (!Append(0, document_.tokens(), key_rows_)) {
    return absl::ResourceExhaustedError("cache: no memory for a document's keys");
  }
  DecoderSeat& seat = *context_.seat;
  run_.emplace(seat.device(), *seat.documents(), static_cast<DeviceItems&>(*this), times_);
  return absl::OkStatus();
}

absl::Status WholeDocument::Advance(bool* more) {
  *more = run_ && run_->Advance();
  if (!*more) run_.reset();
  return absl::OkStatus();
}

std::string WholeDocument::NameOf(int) const {
  return absl::StrCat("a document of ", document_.tokens(), " tokens");
}

std::unique_ptr<DevicePart> WholeDocument::Plan(std::span<const int>) const {
  const std::array<const EncoderSequence*, 1> one = {&whole_};
  return PartOf(context_, one, key_rows_, !document_.wanted.empty());
}

void WholeDocument::Keep(std::span<const int>, const std::byte* results) {
  if (document_.wanted.empty()) return;
  states_.assign(results, results + StateBytes(context_, document_));
}

}  // namespace longview::models
