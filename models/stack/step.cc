#include "models/stack/step.h"

#include <algorithm>
#include <utility>

namespace longview::models {

using kernels::CacheStep;
using kernels::kBlockSlots;

StackStep::StackStep(const StackContext& context, ScratchKeeper& scratch,
                     std::span<const DecoderFeed> feeds, EncoderTimes* times)
    : context_(context), scratch_(scratch), times_(times) {
  for (const DecoderFeed& feed : feeds) feeds_.emplace_back().feed = feed;
}

int64_t StackStep::Wanted(const Feed& feed) const {
  if (feed.feed.wanted == WantedLogits::kNone) return 0;
  return feed.feed.wanted == WantedLogits::kAll ? static_cast<int64_t>(feed.feed.tokens.size()) : 1;
}

StackRun StackStep::NextRun(Feed& feed) {
  auto* sequence = static_cast<StackSequence*>(feed.feed.sequence);
  StackRun run;
  run.sequence = &sequence->cache();
  run.document = sequence->document();
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
    const int vocab = context_.config->vocab;
    feed.logits.resize(static_cast<size_t>(wanted * vocab));
    run.wanted = feed.read - first;
    run.logits = feed.logits.data() + (first - (total - wanted)) * vocab;
  }
  return run;
}

absl::Status StackStep::Advance(bool* more) {
  if (!pass_) {
    std::vector<StackRun> runs;
    for (Feed& feed : feeds_) {
      if (feed.left() > 0) runs.push_back(NextRun(feed));
    }
    *more = !runs.empty();
    if (runs.empty()) return absl::OkStatus();
    pass_.emplace(context_, scratch_, std::move(runs), times_);
    if (absl::Status status = pass_->Begin(); !status.ok()) return status;
  }
  *more = true;
  if (pass_->Advance()) return absl::OkStatus();
  pass_.reset();
  *more = std::any_of(feeds_.begin(), feeds_.end(), [](const Feed& f) { return f.left() > 0; });
  return absl::OkStatus();
}

}  // namespace longview::models
