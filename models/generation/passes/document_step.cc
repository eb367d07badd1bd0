#include "models/generation/passes/document_step.h"

#include "models/status_macros.h"
#include "models/torch_guard.h"

namespace longview::models {

PassDocument& DocumentStep::DocumentBeingRead() const {
  return *static_cast<DocumentSequence*>(feeds_[reading_].sequence)->document();
}

// The next document may need in this very step what the reading of the dropped one holds.
void DocumentStep::Drop(int feed) {
  const auto dropped = static_cast<size_t>(feed);
  if (!dropped_[dropped] && begun_ && dropped == reading_) DocumentBeingRead().Drop();
  dropped_[dropped] = true;
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
  PassDocument& document = DocumentBeingRead();
  if (!begun_) {
    RETURN_IF_ERROR(document.Begin(feeds_[reading_].encode));
    begun_ = true;
  }
  if (!document.Advance()) {
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
