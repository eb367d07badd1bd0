#include "models/generation/parted_step.h"

#include <algorithm>
#include <utility>

#include "models/generation/prefill_part.h"

namespace longview::models {

std::unique_ptr<DecoderStep> PartedStep::Begin(std::span<const DecoderFeed> feeds,
                                               BeginPart begin) {
  const bool whole = std::ranges::all_of(feeds, [](const DecoderFeed& feed) {
    const auto tokens = static_cast<int64_t>(feed.tokens.size());
    return PrefillPart(feed.sequence->tokens(), tokens) == tokens;
  });
  if (whole) return begin(feeds);
  return std::unique_ptr<DecoderStep>(new PartedStep(feeds, std::move(begin)));
}

PartedStep::PartedStep(std::span<const DecoderFeed> feeds, BeginPart begin)
    : begin_(std::move(begin)) {
  for (const DecoderFeed& feed : feeds) feeds_.emplace_back().whole = feed;
}

DecoderFeed PartedStep::NextOf(Feed& feed) const {
  DecoderFeed part = feed.whole;
  const auto count = static_cast<size_t>(
      PrefillPart(feed.whole.sequence->tokens(), static_cast<int64_t>(feed.left())));
  part.tokens = feed.whole.tokens.subspan(feed.read, count);
  if (begun_) part.encode = 0;
  feed.read += count;
  if (feed.left() > 0 && part.wanted == WantedLogits::kLast) part.wanted = WantedLogits::kNone;
  return part;
}

void PartedStep::NextPart() {
  part_feeds_.clear();
  part_members_.clear();
  for (size_t i = 0; i < feeds_.size(); ++i) {
    Feed& feed = feeds_[i];
    const bool encodes = !begun_ && !feed.dropped && feed.whole.encode > 0;
    if (feed.left() == 0 && !encodes) continue;
    part_feeds_.push_back(NextOf(feed));
    part_members_.push_back(i);
  }
  begun_ = true;
  part_ = begin_(part_feeds_);
}

void PartedStep::TakeLogits() {
  for (size_t i = 0; i < part_members_.size(); ++i) {
    Feed& feed = feeds_[part_members_[i]];
    if (feed.dropped) continue;
    const std::span<const float> logits = part_->Logits(static_cast<int>(i));
    feed.logits.insert(feed.logits.end(), logits.begin(), logits.end());
  }
}

bool PartedStep::Advance() {
  if (!status_.ok()) return false;
  if (part_ == nullptr) NextPart();
  if (part_->Advance()) return true;
  status_ = part_->status();
  if (status_.ok()) TakeLogits();
  part_.reset();
  return status_.ok() && std::ranges::any_of(feeds_, [](const Feed& f) { return f.left() > 0; });
}

void PartedStep::Drop(int feed) {
  feeds_[static_cast<size_t>(feed)].dropped = true;
  if (part_ == nullptr) return;
  const auto member = std::ranges::find(part_members_, static_cast<size_t>(feed));
  if (member == part_members_.end()) return;
  part_->Drop(static_cast<int>(member - part_members_.begin()));
}

}  // namespace longview::models
