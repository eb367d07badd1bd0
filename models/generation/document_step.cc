#include "models/generation/document_step.h"

#include "models/generation/document_sequence.h"
#include "models/torch_guard.h"

namespace longview::models {

void DocumentStep::Drop(int feed) {
  dropped_[static_cast<size_t>(feed)] = true;
  tokens_.Drop(feed);
}

// A document whose reading was given up is never attended to: its sequence is dropped too.
absl::Status DocumentStep::Run(bool* more) {
  *more = true;
  while (reading_ < feeds_.size() && (feeds_[reading_].encode == 0 || dropped_[reading_])) {
    ++reading_;
    begun_ = false;
  }
  if (reading_ == feeds_.size()) {
    *more = tokens_.Advance();
    return tokens_.status();
  }
  const DecoderFeed& feed = feeds_[reading_];
  ReadDocument& document = *static_cast<DocumentSequence*>(feed.sequence)->document();
  if (!begun_) {
    if (absl::Status status = document.Begin(feed.encode); !status.ok()) return status;
    begun_ = true;
  }
  bool left = false;
  if (absl::Status status = document.Advance(&left); !status.ok()) return status;
  if (!left) {
    ++reading_;
    begun_ = false;
  }
  return absl::OkStatus();
}

bool DocumentStep::Advance() {
  if (!status_.ok()) return false;
  bool more = false;
  const absl::Status thrown = GuardTorch(family_, [&] { status_ = Run(&more); });
  if (!thrown.ok()) status_ = thrown;
  return status_.ok() && more;
}

}  // namespace longview::models
