#include "models/transformer_ls/step.h"

#include <algorithm>
#include <utility>

#include "models/torch_guard.h"
#include "models/transformer_ls/decoder.h"

namespace longview::models {

using kernels::CacheStep;
using kernels::kBlockSlots;

LsStep::LsStep(const LsContext& context, ScratchKeeper& scratch, std::span<const DecoderFeed> feeds,
               LsTimes* times)
    : context_(context), scratch_(scratch), times_(times) {
  for (const DecoderFeed& feed : feeds) feeds_.emplace_back().feed = feed;
}

int64_t LsStep::Wanted(const Feed& feed) const {
  if (feed.dropped || feed.feed.wanted == WantedLogits::kNone) return 0;
  return feed.feed.wanted == WantedLogits::kAll ? static_cast<int64_t>(feed.feed.tokens.size()) : 1;
}

LsRun LsStep::NextRun(Feed& feed) {
  const LsLmConfig& config = *context_.config;
  auto* sequence = static_cast<LsSequence*>(feed.feed.sequence);
  LsRun run;
  run.sequence = &sequence->cache();
  run.start = run.sequence->tokens();
  const auto total = static_cast<int64_t>(feed.feed.tokens.size());
  int64_t count = total - feed.read;
  if (config.schedule == LsSchedule::kBlocks) {
    count = std::min(count, config.block - run.start % config.block);
  }
  if (feed.feed.phase == DecoderPhase::kDecode) {
    run.group = CacheStep::kDecode;
  } else if (run.start % kBlockSlots != 0) {
    run.group = CacheStep::kResume;
    count = std::min(count, kBlockSlots - run.start % kBlockSlots);
  }
  run.ids = feed.feed.tokens.subspan(static_cast<size_t>(feed.read), static_cast<size_t>(count));
  feed.read += count;
  // Logits of the last `wanted` tokens of the feed: those of them that this run has.
  const int64_t wanted = Wanted(feed), first = std::max(total - wanted, feed.read - count);
  if (first < feed.read && wanted > 0) {
    feed.logits.resize(static_cast<size_t>(wanted * config.vocab));
    run.wanted = feed.read - first;
    run.logits = feed.logits.data() + (first - (total - wanted)) * config.vocab;
  }
  return run;
}

absl::Status LsStep::BeginPass() {
  std::vector<LsRun> runs;
  for (Feed& feed : feeds_) {
    if (feed.read < static_cast<int64_t>(feed.feed.tokens.size())) runs.push_back(NextRun(feed));
  }
  pass_.emplace(context_, scratch_, std::move(runs), times_);
  return pass_->Begin();
}

bool LsStep::AdvancePass() {
  if (!pass_) {
    status_ = BeginPass();
    if (!status_.ok()) return false;
  }
  if (pass_->Advance()) return true;
  pass_.reset();
  return std::any_of(feeds_.begin(), feeds_.end(), [](const Feed& feed) {
    return feed.read < static_cast<int64_t>(feed.feed.tokens.size());
  });
}

bool LsStep::Advance() {
  if (!status_.ok() || feeds_.empty()) return false;
  bool more = false;
  const absl::Status status = GuardTorch("transformer_ls", [&] { more = AdvancePass(); });
  if (!status.ok()) status_ = status;
  if (!status_.ok()) pass_.reset();
  return status_.ok() && more;
}

std::span<const float> LsStep::Logits(int feed) const { return feeds_[feed].logits; }

}  // namespace longview::models
