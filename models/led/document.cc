#include "models/led/document.h"

#include <algorithm>
#include <utility>

#include "models/led/piecewise_document.h"
#include "models/led/whole_document.h"
#include "models/stack/cost.h"

namespace longview::models {
namespace {

using kernels::CachePlace;
using kernels::CacheStep;
using kernels::kBlockSlots;

int32_t VisibleTokens(const EncoderSequence& document) {
  return static_cast<int32_t>(document.tokens() - std::count(document.roles.begin(),
                                                             document.roles.end(),
                                                             kernels::kMaskedToken));
}

}  // namespace

std::shared_ptr<LedDocument> LedDocument::Open(const LedContext& context, EncoderSequence document,
                                               ScratchKeeper& scratch, EncoderTimes* times) {
  if (context.seat != nullptr) {
    return std::make_shared<WholeDocument>(context, std::move(document), times);
  }
  return std::make_shared<PiecewiseDocument>(context, std::move(document), scratch, times);
}

LedDocument::LedDocument(const LedContext& context, EncoderSequence document)
    : context_(context), document_(std::move(document)), cache_(context.decoder.documents) {
  keys_ = {&cache_, VisibleTokens(document_)};
}

double LedDocument::Bytes(const LedContext& context, const EncoderSequence& document) {
  const kernels::CacheShape& shape = context.decoder.documents->shape();
  const auto keys = static_cast<double>(shape.SequenceBytes(0, VisibleTokens(document), 1));
  return context.seat != nullptr ? keys : keys + PiecewiseDocument::ReadingBytes(context, document);
}

int64_t LedDocument::StateBytes(const LedContext& context, const EncoderSequence& document) {
  const int64_t rows = document.wanted.empty() ? 0 : document.tokens();
  return rows * context.decoder.config->width * static_cast<int64_t>(sizeof(float));
}

size_t LedDocument::WorkspaceBytes(const LedContext& context, const EncoderSequence& document) {
  if (context.seat == nullptr) return PiecewiseDocument::PieceBytes(context, document);
  // The device's memory was taken when the model loaded; what is left comes back.
  return static_cast<size_t>(StateBytes(context, document));
}

bool LedDocument::Append(int64_t first, int64_t count, KeyRows& keys) {
  std::vector<int32_t> kept;
  for (int64_t i = 0; i < count; ++i) {
    const auto t = static_cast<size_t>(first + i);
    if (document_.roles[t] == kernels::kMaskedToken) continue;
    keys.rows.push_back(static_cast<int32_t>(i));
    kept.push_back(document_.ids[t]);
  }
  std::span<const int32_t> ids = kept;
  while (!ids.empty()) {
    // The rest of an open block goes on its own way into the cache.
    const int64_t open = cache_.tokens() % kBlockSlots;
    const size_t part =
        open == 0 ? ids.size() : std::min(ids.size(), static_cast<size_t>(kBlockSlots - open));
    const CacheStep::Group group = open == 0 ? CacheStep::kPrefill : CacheStep::kResume;
    CacheStep step(context_.decoder.documents);
    if (!step.Append(group, &cache_, ids.first(part))) return false;
    const std::span<const CachePlace> added = step.places(group, 0);
    keys.places.insert(keys.places.end(), added.begin(), added.end());
    ids = ids.subspan(part);
  }
  return true;
}

}  // namespace longview::models
