#include "models/generation/model/text_generation.h"

#include <algorithm>
#include <utility>

#include "models/generation/decoder/encoder_stage.h"
#include "models/generation/model/generation_cost.h"

namespace longview::models {
namespace {

std::vector<int32_t> Context(const GenerationItem& item) {
  std::vector<int32_t> tokens;
  if (item.document != nullptr) {
    tokens.assign(item.document->ids().begin(), item.document->ids().end());
  }
  tokens.insert(tokens.end(), item.prompt.begin(), item.prompt.end());
  return tokens;
}

// The tokens that processors call "encoder": the prompt, for a model without one.
std::span<const int32_t> SourceOf(const GenerationItem& item, std::span<const int32_t> context) {
  return item.source ? std::span<const int32_t>(item.source->ids) : context;
}

}  // namespace

TextGeneration::TextGeneration(const GenerationItem& item,
                               std::unique_ptr<DecoderSequence> sequence, Decoder& decoder,
                               const TextCodec* codec)
    : item_(item),
      decoder_(decoder),
      context_tokens_(Context(item)),
      encode_seconds_(item.source ? item.source_cost.seconds / item.source->tokens() : 0),
      processors_(item.settings, SourceOf(item, context_tokens_)),
      scores_(item, codec, decoder.vocab_size()),
      sequence_(std::move(sequence)),
      read_(sequence_->tokens()),
      cached_(read_) {
  if (item.settings.max_new_tokens > 0) {
    const ContinuationContext context = {&item.settings, &processors_, codec, decoder.vocab_size(),
                                         /*scores=*/item.source.has_value()};
    continuation_ = item.settings.beams > 1 ? ContinueByBeams(context, context_tokens_)
                                            : ContinueBySampling(context, context_tokens_);
  }
  if (item.settings.echo && !item.scores_prompt()) prompt_ = scores_.TakePiece();
}

int TextGeneration::left_to_grant() const {
  if (!item_.source) return unread();
  return unread() > 0 ? sequence_->unencoded() : 0;
}

double TextGeneration::PrefillSeconds() const {
  return item_.source ? encode_seconds_ : decoder_.costs().PrefillSeconds(read_);
}

Generation::Need TextGeneration::need() const {
  const DecoderCosts& costs = decoder_.costs();
  Need need;
  need.prefill = left_to_grant();
  need.prefill_seconds = PrefillSeconds();
  need.prompt_seconds = item_.source ? need.prefill * need.prefill_seconds
                                     : ReadingSeconds(costs, read_, int64_t{read_} + need.prefill);
  if (continuation_ == nullptr) return need;
  need.sequences = need.prefill > 0 ? std::max(item_.settings.sequences, item_.settings.beams)
                                    : continuation_->sequences();
  const int64_t position = static_cast<int64_t>(context_tokens_.size()) + continuation_->steps();
  double each = costs.DecodeSeconds(position);
  if (item_.source) each += decoder_.encoder()->AttendSeconds(item_.source->tokens());
  need.decode_seconds = need.sequences * each;
  return need;
}

bool TextGeneration::done() const {
  if (!status_.ok()) return true;
  return unread() == 0 && (continuation_ == nullptr || continuation_->done());
}

// Scores come from the logits of every token from the one before the prompt on.
WantedLogits TextGeneration::WantedOf(int prefill) const {
  if (scores_.wanted()) return WantedLogits::kAll;
  return continuation_ != nullptr && prefill == unread() ? WantedLogits::kLast
                                                         : WantedLogits::kNone;
}

void TextGeneration::AddFeeds(int prefill, std::vector<DecoderFeed>& feeds) {
  granted_ = prefill;
  if (prefill == 0) return continuation_->AddFeeds(feeds);
  fed_ = prefill;
  if (item_.source) fed_ = prefill == left_to_grant() ? unread() : 0;
  DecoderFeed& feed = feeds.emplace_back();
  feed.sequence = sequence_.get();
  feed.tokens =
      std::span(context_tokens_).subspan(static_cast<size_t>(read_), static_cast<size_t>(fed_));
  feed.wanted = fed_ > 0 ? WantedOf(fed_) : WantedLogits::kNone;
  if (scores_.wanted()) feed.sink = &scores_;
  if (item_.source) feed.encode = prefill;
}

void TextGeneration::Absorb(const DecoderStep& step, int first) {
  if (granted_ > 0) return AbsorbPrefill(step, first);
  status_ = continuation_->Absorb(step, first);
}

void TextGeneration::AbsorbPrefill(const DecoderStep& step, int feed) {
  read_ += fed_;
  if (unread() > 0) return;
  states_ = sequence_->TakeEncoderStates();
  sequence_->CachePrefix(item_.cache_space);
  if (item_.scores_prompt()) prompt_ = scores_.TakePiece();
  if (continuation_ == nullptr) {
    sequence_.reset();
    for (int i = 0; i < item_.settings.sequences; ++i) {
      Piece& piece = empty_.emplace_back();
      piece.index = i;
      piece.finish_reason = "length";
    }
    return;
  }
  const auto vocab = static_cast<size_t>(decoder_.vocab_size());
  status_ = continuation_->Begin(std::move(sequence_), step.Logits(feed).last(vocab));
}

void TextGeneration::Fail(const absl::Status& status) { status_ = status; }

std::vector<Piece> TextGeneration::TakePieces() {
  std::vector<Piece> pieces;
  if (!status_.ok() || taken_) return pieces;
  if (prompt_) pieces.push_back(*std::exchange(prompt_, std::nullopt));
  if (continuation_ != nullptr) continuation_->TakePieces(pieces);
  if (!std::exchange(empty_taken_, !empty_.empty())) {
    pieces.insert(pieces.end(), empty_.begin(), empty_.end());
  }
  return pieces;
}

HostTensor TextGeneration::TakeStates() {
  HostTensor tensor;
  tensor.name = "encoder_last_hidden_state";
  tensor.shape = {item_.source->tokens(), decoder_.encoder()->width()};
  tensor.data = std::move(states_);
  return tensor;
}

absl::StatusOr<Answer> TextGeneration::Take() {
  if (!status_.ok()) return status_;
  taken_ = true;
  Answer answer;
  answer.usage = item_.usage();
  answer.usage.cached_tokens = cached_;
  for (const std::string& name : item_.tensors) {
    answer.tensors.push_back(name == "logits" ? scores_.TakeLogits() : TakeStates());
  }
  answer.prompt = std::move(prompt_);
  if (continuation_ != nullptr) {
    answer.usage.output_tokens = continuation_->generated_tokens();
    answer.sequences = continuation_->TakeSequences();
  } else {
    answer.sequences = std::move(empty_);
  }
  return answer;
}

}  // namespace longview::models
