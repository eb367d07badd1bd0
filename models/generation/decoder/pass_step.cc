#include "models/generation/decoder/pass_step.h"

#include <algorithm>
#include <utility>

#include "models/generation/decoder/token_run.h"
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

PassStep::Cut PassStep::NextCut(const Feed& feed) const {
  const int64_t start = feed.feed.sequence->tokens();
  int64_t count = PrefillPart(start, feed.left());
  if (rules_.boundary > 0) count = std::min(count, rules_.boundary - start % rules_.boundary);
  if (feed.feed.phase == DecoderPhase::kDecode) return {CacheStep::kDecode, count};
  const int64_t open = start % kBlockSlots;
  if (open == 0) return {CacheStep::kPrefill, count};
  return {CacheStep::kResume, std::min(count, kBlockSlots - open)};
}

bool PassStep::Chooses(const DecoderFeed& feed) const {
  return rules_.chooses != nullptr && feed.choice != nullptr &&
         feed.phase == DecoderPhase::kDecode && rules_.chooses(*feed.choice->settings);
}

int64_t PassStep::RowsOf(const Feed& feed) const {
  return feed.feed.sink == nullptr ? feed.wanted() : std::min<int64_t>(feed.wanted(), kPrefillPart);
}

void PassStep::TellSinks() {
  for (Feed& feed : feeds_) {
    if (std::exchange(feed.told, true) || feed.dropped) continue;
    feed.feed.sink->Add(static_cast<int>(feed.start),
                        {feed.logits.get(), static_cast<size_t>(feed.rows * rules_.vocab)});
  }
}

TokenRun PassStep::NextRun(const Cut& cut, Feed& feed) const {
  TokenRun run;
  run.group = cut.group;
  run.sequence = static_cast<CachedSequence*>(feed.feed.sequence);
  run.start = run.sequence->tokens();
  const auto total = static_cast<int64_t>(feed.feed.tokens.size());
  const int64_t count = cut.tokens;
  run.ids = feed.feed.tokens.subspan(static_cast<size_t>(feed.read), static_cast<size_t>(count));
  feed.read += count;
  // Logits of the last `wanted` tokens of the feed: those of them that this run has.
  const int64_t wanted = feed.wanted(), first = std::max(total - wanted, feed.read - count);
  if (first >= feed.read || wanted == 0) return run;
  run.wanted = feed.read - first;
  if (Chooses(feed.feed)) {
    run.choice = feed.feed.choice;
    run.chosen = &feed.chosen;
    return run;
  }
  if (feed.logits == nullptr) {
    feed.logits =
        std::make_unique_for_overwrite<float[]>(static_cast<size_t>(RowsOf(feed) * rules_.vocab));
  }
  if (feed.feed.sink != nullptr) {
    feed.start = run.start + count - run.wanted;
    feed.rows = run.wanted;
    feed.told = false;
    run.logits = feed.logits.get();
    return run;
  }
  run.logits = feed.logits.get() + (first - (total - wanted)) * rules_.vocab;
  return run;
}

class PassStep::Room {
 public:
  explicit Room(const Rules& rules) : rules_(rules) {}

  // Whether there is room for it; then there is so much less.
  bool Take(const Cut& cut) {
    const bool decodes = cut.group == CacheStep::kDecode;
    int& runs = decodes ? decoding_ : reading_;
    if (rules_.pass_runs > 0 && runs == rules_.pass_runs) return false;
    if (!decodes && rules_.pass_tokens > 0 && tokens_ + cut.tokens > rules_.pass_tokens) {
      return false;
    }
    ++runs;
    if (!decodes) tokens_ += cut.tokens;
    return true;
  }

 private:
  const Rules& rules_;
  int64_t tokens_ = 0;  // Tokens of prefill.
  int reading_ = 0, decoding_ = 0;
};

std::vector<TokenRun> PassStep::NextRuns() {
  std::vector<TokenRun> runs;
  Room room(rules_);
  for (Feed& feed : feeds_) {
    if (feed.left() == 0) continue;
    const Cut cut = NextCut(feed);
    if (room.Take(cut)) runs.push_back(NextRun(cut, feed));
  }
  return runs;
}

bool PassStep::AdvancePass() {
  if (!pass_) {
    std::vector<TokenRun> runs = NextRuns();
    if (runs.empty()) return false;
    pass_ = make_(std::move(runs));
    status_ = pass_->Begin();
    if (!status_.ok()) return false;
  }
  if (pass_->Advance()) return true;
  pass_.reset();
  TellSinks();
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
  const Feed& read = feeds_[static_cast<size_t>(feed)];
  if (read.logits == nullptr) return {};
  const auto vocab = static_cast<size_t>(rules_.vocab);
  if (read.feed.sink == nullptr) {
    return {read.logits.get(), static_cast<size_t>(read.wanted()) * vocab};
  }
  return std::span(read.logits.get(), static_cast<size_t>(read.rows) * vocab).last(vocab);
}

const ChosenToken* PassStep::Chosen(int feed) const {
  const std::optional<ChosenToken>& chosen = feeds_[static_cast<size_t>(feed)].chosen;
  return chosen ? &*chosen : nullptr;
}

}  // namespace longview::models
