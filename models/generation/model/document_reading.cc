#include "models/generation/model/document_reading.h"

#include <cstdint>
#include <utility>

#include "models/generation/model/generation_cost.h"

namespace longview::models {

DocumentReading::DocumentReading(const GenerationItem& item, const Decoder& decoder)
    : item_(item), decoder_(decoder), sequence_(item.document->Lend()) {
  const std::span<const int32_t> before = item.document->ids();
  const int start = sequence_->tokens();
  tokens_.assign(before.begin() + start, before.end());
  tokens_.insert(tokens_.end(), item.prompt.begin(), item.prompt.end());
  const int total = start + static_cast<int>(tokens_.size());
  tokens_.resize(static_cast<size_t>(
      GeneratorDocument::ReadAhead(total, decoder.prefill_alignment()) - start));
  FinishIfRead();
}

void DocumentReading::FinishIfRead() {
  if (unread() > 0) return;
  if (!tokens_.empty()) sequence_->CachePrefix(item_.cache_space);
  item_.document->Put(std::move(sequence_), item_.prompt);
}

Generation::Need DocumentReading::need() const {
  Need need;
  need.prefill = unread();
  if (need.prefill > 0) {
    const int64_t read = sequence_->tokens();
    need.prefill_seconds = decoder_.costs().PrefillSeconds(read);
    need.prompt_seconds = ReadingSeconds(decoder_.costs(), read, read + need.prefill);
  }
  return need;
}

void DocumentReading::AddFeeds(int prefill, std::vector<DecoderFeed>& feeds) {
  feeds.push_back(
      {sequence_.get(),
       std::span(tokens_).subspan(static_cast<size_t>(read_), static_cast<size_t>(prefill)),
       DecoderPhase::kPrefill, WantedLogits::kNone});
  read_ += prefill;
}

void DocumentReading::Absorb(const DecoderStep&, int) { FinishIfRead(); }

void DocumentReading::Fail(const absl::Status& status) { status_ = status; }

absl::StatusOr<Answer> DocumentReading::Take() {
  if (!status_.ok()) return status_;
  Answer answer;
  answer.usage = item_.usage();
  answer.usage.cached_tokens = item_.document_tokens;
  return answer;
}

}  // namespace longview::models
