#include "models/generation/pass_step.h"

#include <algorithm>
#include <utility>

#include "models/generation/prefill_part.h"
#include "models/torch_guard.h"

namespace longview::models {

using kernels::CacheStep;
using kernels::kBlockSlots;

PassStep::PassStep(Rules rules, std::span<const DecoderFeed> feeds, MakePass make)
    : rules_(std::move(rules)), make_(std::move(make)) {
  for (const DecoderFeed& feed : feeds) feeds_.emplace_back().feed = feed;
}

int64_t PassStep::Feed::wanted() const {
  if (feed.wanted == WantedLogits::kNone) return 0;
  return feed.wanted == WantedLogits::kAll ? static_cast<int64_t>(feed.tokens.size()) : 1;
}

TokenRun PassStep::NextRun(Feed& feed) const {
  TokenRun run;
  run.sequence = static_cast<CachedSequence*>(feed.feed.sequence);
  run.start = run.sequence->tokens();
  const auto total = static_cast<int64_t>(feed.feed.tokens.size());
  int64_t count = PrefillPart(run.start, feed.left());
  if (rules_.boundary > 0) count = std::min(count, rules_.boundary - run.start % rules_.boundary);
  if (feed.feed.phase == DecoderPhase::kDecode) {
    run.group = CacheStep::kDecode;
  } else if (run.start % kBlockSlots != 0) {
    run.group = CacheStep::kResume;
    count = std::min(count, kBlockSlots - run.start % kBlockSlots);
  }
  run.ids = feed.feed.tokens.subspan(static_cast<size_t>(feed.read), static_cast<size_t>(count));
  feed.read += count;
  // Logits of the last `wanted` tokens of the feed: those of them that this run has.
  const int64_t wanted = feed.wanted(), first = std::max(total - wanted, feed.read - count);
  if (first < feed.read && wanted > 0) {
    feed.logits.resize(static_cast<size_t>(wanted * rules_.vocab));
    run.wanted = feed.read - first;
    run.logits = feed.logits.data() + (first - (total - wanted)) * rules_.vocab;
  }
  return run;
}

bool PassStep::AdvancePass() {
  if (!pass_) {
    std::vector<TokenRun> runs;
    for (Feed& feed : feeds_) {
      if (feed.left() > 0) runs.push_back(NextRun(feed));
    }
    if (runs.empty()) return false;
    pass_ = make_(std::move(runs));
    status_ = pass_->Begin();
    if (!status_.ok()) return false;
  }
  if (pass_->Advance()) return true;
  pass_.reset();
  return std::any_of(feeds_.begin(), feeds_.end(), [](const Feed& f) { return f.left() > 0; });
}

bool PassStep::Advance() {
  if (!status_.ok()) return false;
  bool more = false;
  const absl::Status thrown = GuardTorch(rules_.family, [&] { more = AdvancePass(); });
  if (!thrown.ok()) status_ = thrown;
  if (!status_.ok()) pass_.reset();
  return status_.ok() && more;
}

std::span<const float> PassStep::Logits(int feed) const {
  return feeds_[static_cast<size_t>(feed)].logits;
}

}  // namespace longview::models
