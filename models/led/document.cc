#include "models/led/document.h"

#include <algorithm>
#include <utility>

#include "models/layers/panels.h"
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

LedDocument::LedDocument(const LedContext& context, EncoderSequence document,
                         ScratchKeeper& scratch, EncoderTimes* times)
    : context_(context),
      document_(std::move(document)),
      scratch_(scratch),
      times_(times),
      cache_(context.decoder.documents) {
  keys_ = {&cache_, VisibleTokens(document_)};
}

LedDocument::~LedDocument() {
  const auto lock = context_.budget->Lock();
  context_.budget->AddUsed(-held_bytes_);
}

double LedDocument::Bytes(const LedContext& context, const EncoderSequence& document) {
  const int32_t keys = VisibleTokens(document);
  const kernels::CacheShape shape =
      DocumentCacheShape(*context.decoder.config, context.decoder.block_type());
  return static_cast<double>(shape.SequenceBytes(0, keys, 1)) +
         static_cast<double>(PiecewiseEncoder::HeldBytes(context.encoder, document));
}

size_t LedDocument::WorkspaceBytes(const LedContext& context, const EncoderSequence& document) {
  const int64_t element = ElementBytes(context.decoder.compute);
  const int64_t width = context.decoder.config->width;
  const auto keys = static_cast<size_t>(document.tokens() * 2 * width * element);
  // Two results of one panel are alive at a time: the expanded one and what follows it.
  const int64_t widest = std::max(3 * width, int64_t{context.encoder.config->intermediate}) + width;
  return std::max(PiecewiseEncoder::PieceBytes(context.encoder, document), keys) +
         static_cast<size_t>(kPanelRows * widest * element);
}

bool LedDocument::Hold(int64_t bytes) {
  const auto lock = context_.budget->Lock();
  if (!context_.budget->MakeRoom(bytes)) return false;
  context_.budget->AddUsed(bytes);
  held_bytes_ = bytes;
  return true;
}

absl::Status LedDocument::Begin(int tokens) {
  if (encoder_ == nullptr) {
    const auto bytes =
        static_cast<int64_t>(PiecewiseEncoder::HeldBytes(context_.encoder, document_));
    if (!Hold(bytes)) return absl::ResourceExhaustedError("cache: no memory to read a document");
    encoder_ =
        std::make_unique<PiecewiseEncoder>(context_.encoder, document_, *this, scratch_, times_);
    if (!document_.wanted.empty()) {
      states_.resize(
          static_cast<size_t>(int64_t{document_.tokens()} * context_.decoder.config->width));
    }
  }
  read_ += tokens;
  until_ = encoder_->RowsUntil(read_);
  return absl::OkStatus();
}

absl::Status LedDocument::Advance(bool* more) {
  *more = encoder_->Advance(until_);
  if (no_memory_) return absl::ResourceExhaustedError("cache: no memory for a document's keys");
  if (*more || unencoded() > 0) return absl::OkStatus();
  encoder_.reset();
  const auto lock = context_.budget->Lock();
  context_.budget->AddUsed(-std::exchange(held_bytes_, 0));
  return absl::OkStatus();
}

double LedDocument::LinearWork() const {
  const StackConfig& config = *context_.decoder.config;
  return 2.0 * config.layers() * config.width * config.width;
}

bool LedDocument::Append(std::span<const int32_t> ids, std::vector<CachePlace>& places) {
  while (!ids.empty()) {
    // The rest of an open block goes on its own way into the cache.
    const int64_t open = cache_.tokens() % kBlockSlots;
    const size_t count =
        open == 0 ? ids.size() : std::min(ids.size(), static_cast<size_t>(kBlockSlots - open));
    const CacheStep::Group group = open == 0 ? CacheStep::kPrefill : CacheStep::kResume;
    CacheStep step(context_.decoder.documents);
    if (!step.Append(group, &cache_, ids.first(count))) return false;
    const std::span<const CachePlace> added = step.places(group, 0);
    places.insert(places.end(), added.begin(), added.end());
    ids = ids.subspan(count);
  }
  return true;
}

void LedDocument::Take(int64_t first, int64_t count, const float* x, const std::byte* input) {
  const int64_t width = context_.decoder.config->width;
  if (!states_.empty()) std::copy_n(x, count * width, states_.begin() + first * width);
  std::vector<int32_t> ids;
  std::vector<int64_t> kept(static_cast<size_t>(count), -1);  // Row among those kept.
  for (int64_t i = 0; i < count; ++i) {
    const auto t = static_cast<size_t>(first + i);
    if (document_.roles[t] == kernels::kMaskedToken) continue;
    kept[static_cast<size_t>(i)] = static_cast<int64_t>(ids.size());
    ids.push_back(document_.ids[t]);
  }
  std::vector<CachePlace> places;
  no_memory_ = no_memory_ || !Append(ids, places);
  if (no_memory_ || ids.empty()) return;
  const Compute compute = context_.decoder.compute;
  const RowKernels& kernels = ChooseRowKernels(compute);
  const int64_t row_bytes = 2 * width * ElementBytes(compute);
  const ScratchLoan loan(scratch_, ids.size() * static_cast<size_t>(row_bytes));
  kernels::ProjectionCache::Rows rows;
  rows.k = loan.data();
  rows.v = loan.data() + row_bytes / 2;
  rows.dtype = SpanType(compute);
  rows.k_row_stride = rows.v_row_stride = 2 * width;
  rows.k_head_stride = rows.v_head_stride = context_.decoder.config->head_dim();
  for (size_t layer = 0; layer < context_.weights->document.size(); ++layer) {
    const DenseLayer& keys = context_.weights->document[layer];
    ForEachRow(keys, input, count, keys.linear.sizes(), *context_.decoder.pool, times_,
               [&](int64_t row, std::byte* y) {
                 const int64_t to = kept[static_cast<size_t>(row)];
                 if (to < 0) return;
                 kernels.bias_copy(y, keys.bias.data(), 2 * width, loan.data() + to * row_bytes);
               });
    context_.decoder.documents->Write(0, static_cast<int>(layer), places, rows,
                                      *context_.decoder.pool);
  }
}

}  // namespace longview::models
