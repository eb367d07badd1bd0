#include "models/generation/pass_step.h"

#include <algorithm>
#include <utility>

#include "models/torch_guard.h"

namespace longview::models {

using kernels::CacheStep;
using kernels::kBlockSlots;

PassStep::PassStep(std::string family, int vocab, std::span<const DecoderFeed> feeds, MakePass make)
    : family_(std::move(family)), vocab_(vocab), make_(std::move(make)) {
  for (const DecoderFeed& feed : feeds) feeds_.emplace_back().feed = feed;
}

int64_t PassStep::Wanted(const Feed& feed) const {
  if (feed.dropped || feed.feed.wanted == WantedLogits::kNone) return 0;
  return feed.feed.wanted == WantedLogits::kAll ? static_cast<int64_t>(feed.feed.tokens.size()) : 1;
}

TokenRun PassStep::NextRun(Feed& feed) {
  TokenRun run;
  run.sequence = static_cast<CachedSequence*>(feed.feed.sequence);
  run.start = run.sequence->tokens();
  const auto total = static_cast<int64_t>(feed.feed.tokens.size());
  int64_t count = total - feed.read;
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
    feed.logits.resize(static_cast<size_t>(wanted * vocab_));
    run.wanted = feed.read - first;
    run.logits = feed.logits.data() + (first - (total - wanted)) * vocab_;
  }
  return run;
}

absl::Status PassStep::BeginPass() {
  std::vector<TokenRun> runs;
  for (Feed& feed : feeds_) {
    if (feed.read < static_cast<int64_t>(feed.feed.tokens.size())) runs.push_back(NextRun(feed));
  }
  pass_ = make_(std::move(runs));
  return pass_->Begin();
}

bool PassStep::AdvancePass() {
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

bool PassStep::Advance() {
  if (!status_.ok() || feeds_.empty()) return false;
  bool more = false;
  const absl::Status status = GuardTorch(family_, [&] { more = AdvancePass(); });
  if (!status.ok()) status_ = status;
  if (!status_.ok()) pass_.reset();
  return status_.ok() && more;
}

std::span<const float> PassStep::Logits(int feed) const {
  return feeds_[static_cast<size_t>(feed)].logits;
}

}  // namespace longview::models
