#include "models/generation/cached_decoder.h"

#include "models/generation/cached_sequence.h"

namespace longview::models {

absl::Status CachedDecoder::Reserve(const kernels::CacheShape& shape, const CacheRoom& room,
                                    std::string_view origin,
                                    const kernels::ProjectionCache::Options& options) {
  budget_ = room.Open();
  cache_ = kernels::ProjectionCache::Create(shape, options, budget_.get());
  return cache_ == nullptr ? NoAddresses(origin, *budget_) : absl::OkStatus();
}

std::unique_ptr<DecoderSequence> CachedDecoder::Open(std::span<const int32_t> prompt,
                                                     uint64_t space) {
  return std::make_unique<CachedSequence>(
      cache_->Open(prompt, kernels::Reuse::kPrefillMade, space));
}

std::unique_ptr<DecoderStep> CachedDecoder::Begin(std::span<const DecoderFeed> feeds) {
  return std::make_unique<PassStep>(rules_, feeds, [this](std::vector<TokenRun> runs) {
    return MakePass(std::move(runs), scratch_, times_);
  });
}

absl::Status CachedDecoder::WarmUp() {
  EncoderTimes* const kept = times_;
  const absl::Status status =
      CalibrateDecoder({*this, *costs_, static_cast<double>(budget_->Room()),
                        [this](EncoderTimes* times) { times_ = times; }});
  times_ = kept;
  return status;
}

CacheUse CachedDecoder::cache() const { return UseOf(*budget_); }

}  // namespace longview::models
