#include <algorithm>
#include <utility>

#include "models/generation/model/continuation.h"
#include "models/generation/sampling/beam_search.h"
#include "models/generation/sampling/streamed_text.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

class BeamContinuation final : public Continuation {
 public:
  BeamContinuation(const ContinuationContext& context, std::vector<int32_t> prompt)
      : context_(context),
        settings_(*context.settings),
        search_(settings_, *context.processors,
                TokenHistory(std::move(prompt), context.vocab, context.processors->needs_distinct(),
                             context.processors->needs_counts()),
                context.codec) {}

  absl::Status Begin(std::unique_ptr<DecoderSequence> sequence,
                     std::span<const float> logits) override;
  bool done() const override { return search_.done(); }
  int sequences() const override { return static_cast<int>(beams_.size()); }
  int steps() const override { return steps_; }
  void AddFeeds(std::vector<DecoderFeed>& feeds) const override;
  absl::Status Absorb(const DecoderStep& step, int first) override;
  void TakePieces(std::vector<Piece>& pieces) override;
  std::vector<Piece> TakeSequences() override { return std::move(results_); }
  int generated_tokens() const override;

 private:
  struct Beam {
    std::unique_ptr<DecoderSequence> sequence;
    int32_t next = 0;  // To be read.
  };

  absl::Status Advance();
  void Reorder();
  void Finish();

  const ContinuationContext context_;
  const GenerationSettings& settings_;
  BeamSearch search_;
  std::vector<Beam> beams_;
  std::vector<std::span<const float>> rows_;  // Rows of the step at hand.
  std::vector<Piece> results_;
  bool at_prompt_ = true;  // Every beam stands at the prompt and shares the first one's sequence.
  bool taken_ = false;
  int steps_ = 0;
};

absl::Status BeamContinuation::Begin(std::unique_ptr<DecoderSequence> sequence,
                                     std::span<const float> logits) {
  rows_.assign(static_cast<size_t>(settings_.beams), logits);
  beams_.resize(static_cast<size_t>(settings_.beams));
  beams_[0].sequence = std::move(sequence);
  return Advance();
}

absl::Status BeamContinuation::Absorb(const DecoderStep& step, int first) {
  rows_.clear();
  for (size_t b = 0; b < beams_.size(); ++b) {
    rows_.push_back(step.Logits(first + static_cast<int>(b)));
  }
  return Advance();
}

absl::Status BeamContinuation::Advance() {
  RETURN_IF_ERROR(search_.Advance(rows_));
  ++steps_;
  search_.done() ? Finish() : Reorder();
  return absl::OkStatus();
}

// The last beam that continues a sequence takes it over, the others fork it before.
void BeamContinuation::Reorder() {
  const bool at_prompt = std::exchange(at_prompt_, false);
  const std::span<const int> parents = search_.parents();
  std::vector<size_t> source(parents.size());
  std::vector<int> uses(beams_.size());
  for (size_t b = 0; b < parents.size(); ++b) {
    source[b] = at_prompt ? 0 : static_cast<size_t>(parents[b]);
    ++uses[source[b]];
  }
  std::vector<Beam> next(parents.size());
  for (size_t b = 0; b < parents.size(); ++b) {
    std::unique_ptr<DecoderSequence>& from = beams_[source[b]].sequence;
    next[b].sequence = --uses[source[b]] == 0 ? std::move(from) : from->Fork();
    next[b].next = search_.token(static_cast<int>(b));
  }
  beams_ = std::move(next);
}

void BeamContinuation::AddFeeds(std::vector<DecoderFeed>& feeds) const {
  for (const Beam& beam : beams_) {
    feeds.push_back(
        {beam.sequence.get(), {&beam.next, 1}, DecoderPhase::kDecode, WantedLogits::kLast});
  }
}

void BeamContinuation::Finish() {
  beams_.clear();
  const std::vector<std::string> no_stops;
  for (BeamSearch::Finished& found : search_.Take()) {
    Piece& piece = results_.emplace_back();
    piece.index = static_cast<int>(results_.size()) - 1;
    piece.finish_reason = found.ended ? "stop" : "length";
    piece.score = static_cast<float>(found.score);
    StreamedText text(no_stops);
    for (size_t i = 0; context_.codec != nullptr && i < found.tokens.size(); ++i) {
      const bool end = found.ended && i + 1 == found.tokens.size();
      if (!end) text.Append(context_.codec->Bytes(found.tokens[i]));
    }
    text.Finish(piece.text);
    for (TokenReport& report : found.reports) {
      piece.logprobs.push_back(std::move(report.own));
      piece.top.push_back(std::move(report.top));
    }
    piece.token_ids = std::move(found.tokens);
  }
}

void BeamContinuation::TakePieces(std::vector<Piece>& pieces) {
  if (!done() || std::exchange(taken_, true)) return;
  pieces.insert(pieces.end(), results_.begin(), results_.end());
}

int BeamContinuation::generated_tokens() const {
  int tokens = 0;
  for (const Piece& piece : results_) tokens += static_cast<int>(piece.token_ids.size());
  return tokens;
}

}  // namespace

std::unique_ptr<Continuation> ContinueByBeams(const ContinuationContext& context,
                                              std::vector<int32_t> prompt) {
  return std::make_unique<BeamContinuation>(context, std::move(prompt));
}

}  // namespace longview::models
