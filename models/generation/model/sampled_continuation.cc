#include <algorithm>
#include <cmath>
#include <utility>

#include "models/generation/model/continuation.h"
#include "models/generation/sampling/log_probabilities.h"
#include "models/generation/sampling/sampler.h"
#include "models/generation/sampling/streamed_text.h"
#include "models/generation/sampling/token_choice.h"
#include "models/generation/sampling/token_history.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

bool Contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

struct Sample {
  Sample(TokenHistory ids, const std::vector<std::string>& stops)
      : history(std::move(ids)), text(stops) {}

  std::unique_ptr<DecoderSequence> sequence;  // Null once it is finished.
  TokenHistory history;
  TokenChoice choice;  // Chooses the next token.
  StreamedText text;
  Piece whole;
  size_t taken_text = 0, taken_ids = 0;  // Parts of `whole` taken by pieces.
  int32_t next = 0;                      // To be read.
  double log_probability = 0;            // Sum over its tokens so far, if scores are wanted.

  bool finished() const { return !whole.finish_reason.empty(); }
};

class SampledContinuation final : public Continuation {
 public:
  SampledContinuation(const ContinuationContext& context, std::vector<int32_t> prompt)
      : context_(context), settings_(*context.settings), sampler_(settings_, *context.processors) {
    // Without processors nobody looks at the prompt.
    if (context.processors->neutral()) prompt.clear();
    const TokenHistory history(std::move(prompt), context.vocab,
                               context.processors->needs_distinct(),
                               context.processors->needs_counts());
    samples_.reserve(static_cast<size_t>(settings_.sequences));
    for (int i = 0; i < settings_.sequences; ++i) {
      Sample& sample = samples_.emplace_back(history, settings_.stop);
      sample.whole.index = i;
      sample.choice = {&settings_, context.processors, &sample.history, i, context.scores};
    }
  }

  absl::Status Begin(std::unique_ptr<DecoderSequence> sequence,
                     std::span<const float> logits) override;
  bool done() const override { return sequences() == 0; }
  int sequences() const override { return running_; }
  int steps() const override { return steps_; }
  void AddFeeds(std::vector<DecoderFeed>& feeds) const override;
  absl::Status Absorb(const DecoderStep& step, int first) override;
  void TakePieces(std::vector<Piece>& pieces) override;
  std::vector<Piece> TakeSequences() override;
  int generated_tokens() const override {
    int tokens = 0;
    for (const Sample& sample : samples_)
      tokens += sample.history.tokens() - sample.history.prompt();
    return tokens;
  }

 private:
  absl::Status Next(Sample& sample, std::span<const float> logits);
  absl::Status Take(Sample& sample, const ChosenToken& token);
  void Append(Sample& sample, int32_t id);

  const ContinuationContext context_;
  const GenerationSettings& settings_;
  Sampler sampler_;
  std::vector<Sample> samples_;
  int running_ = 0;
  int steps_ = 0;
};

absl::Status SampledContinuation::Next(Sample& sample, std::span<const float> logits) {
  ASSIGN_OR_RETURN(const int32_t chosen,
                   sampler_.Choose(logits, sample.history, sample.whole.index));
  if (settings_.logprobs) {
    TokenReport report = ReportToken(logits, chosen, *settings_.logprobs, context_.codec);
    sample.whole.logprobs.push_back(std::move(report.own));
    sample.whole.top.push_back(std::move(report.top));
  }
  if (context_.scores) sample.log_probability += LogProbability(logits, chosen);
  Append(sample, chosen);
  return absl::OkStatus();
}

// The decoder chose the token itself.
absl::Status SampledContinuation::Take(Sample& sample, const ChosenToken& token) {
  if (!token.id.ok()) return token.id.status();
  if (settings_.logprobs) {
    const auto entry = [&](const TokenProbability& of) {
      return TokenLogprob{of.id, of.logprob,
                          context_.codec == nullptr ? std::string() : context_.codec->Bytes(of.id)};
    };
    sample.whole.logprobs.push_back(entry({*token.id, token.logprob}));
    std::vector<TokenLogprob>& top = sample.whole.top.emplace_back();
    for (const TokenProbability& probable : token.top) top.push_back(entry(probable));
  }
  if (context_.scores) sample.log_probability += token.logprob;
  Append(sample, *token.id);
  return absl::OkStatus();
}

void SampledContinuation::Append(Sample& sample, int32_t id) {
  sample.next = id;
  sample.history.Append(id);
  sample.whole.token_ids.push_back(id);
  if (Contains(settings_.eos, id) || Contains(settings_.stop_ids, id)) {
    sample.whole.finish_reason = "stop";
  } else if (context_.codec != nullptr && sample.text.Append(context_.codec->Bytes(id))) {
    sample.whole.finish_reason = "stop";
  } else if (sample.history.tokens() - sample.history.prompt() >= settings_.max_new_tokens) {
    sample.whole.finish_reason = "length";
  }
  if (sample.finished()) {
    // Beam search's score: the log-probability over the length to the power of the penalty.
    if (context_.scores) {
      const auto tokens = static_cast<double>(sample.whole.token_ids.size());
      sample.whole.score =
          static_cast<float>(sample.log_probability / std::pow(tokens, settings_.length_penalty));
    }
    sample.text.Finish(sample.whole.text);
    sample.sequence.reset();
    --running_;
  } else {
    sample.text.Release(sample.whole.text);
  }
}

absl::Status SampledContinuation::Begin(std::unique_ptr<DecoderSequence> sequence,
                                        std::span<const float> logits) {
  for (size_t i = 1; i < samples_.size(); ++i) samples_[i].sequence = sequence->Fork();
  samples_[0].sequence = std::move(sequence);
  running_ = static_cast<int>(samples_.size());
  ++steps_;
  for (Sample& sample : samples_) {
    RETURN_IF_ERROR(Next(sample, logits));
  }
  return absl::OkStatus();
}

void SampledContinuation::AddFeeds(std::vector<DecoderFeed>& feeds) const {
  for (const Sample& sample : samples_) {
    if (sample.finished()) continue;
    DecoderFeed& feed = feeds.emplace_back();
    feed.sequence = sample.sequence.get();
    feed.tokens = {&sample.next, 1};
    feed.phase = DecoderPhase::kDecode;
    feed.choice = &sample.choice;
  }
}

absl::Status SampledContinuation::Absorb(const DecoderStep& step, int first) {
  ++steps_;
  for (Sample& sample : samples_) {
    if (sample.finished()) continue;
    const int feed = first++;
    const ChosenToken* const chosen = step.Chosen(feed);
    RETURN_IF_ERROR(chosen != nullptr ? Take(sample, *chosen) : Next(sample, step.Logits(feed)));
  }
  return absl::OkStatus();
}

void SampledContinuation::TakePieces(std::vector<Piece>& pieces) {
  for (Sample& sample : samples_) {
    const Piece& whole = sample.whole;
    if (sample.taken_ids == whole.token_ids.size() && sample.taken_text == whole.text.size()) {
      continue;
    }
    Piece& piece = pieces.emplace_back();
    piece.index = whole.index;
    piece.text = whole.text.substr(sample.taken_text);
    const auto since = static_cast<ptrdiff_t>(sample.taken_ids);
    piece.token_ids.assign(whole.token_ids.begin() + since, whole.token_ids.end());
    if (settings_.logprobs) {
      piece.logprobs.assign(whole.logprobs.begin() + since, whole.logprobs.end());
      piece.top.assign(whole.top.begin() + since, whole.top.end());
    }
    piece.finish_reason = whole.finish_reason;
    sample.taken_text = whole.text.size();
    sample.taken_ids = whole.token_ids.size();
  }
}

std::vector<Piece> SampledContinuation::TakeSequences() {
  std::vector<Piece> sequences;
  for (Sample& sample : samples_) sequences.push_back(std::move(sample.whole));
  return sequences;
}

}  // namespace

std::unique_ptr<Continuation> ContinueBySampling(const ContinuationContext& context,
                                                 std::vector<int32_t> prompt) {
  return std::make_unique<SampledContinuation>(context, std::move(prompt));
}

}  // namespace longview::models
