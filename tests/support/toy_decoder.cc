#include "tests/support/toy_decoder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "models/generation/sampling/row_math.h"

namespace longview::testing {

using models::DecoderFeed;
using models::DecoderPhase;
using models::WantedLogits;

namespace {

void Require(bool condition, const char* rule) {
  if (condition) return;
  std::fprintf(stderr, "toy decoder: %s\n", rule);
  std::abort();
}

uint64_t Mix(uint64_t state) {
  state = (state ^ state >> 31) * 0x9E3779B97F4A7C15;
  return state ^ state >> 29;
}

class ToyCosts final : public models::DecoderCosts {
 public:
  double StateBytes(int64_t shared, int64_t longest, int sequences) const override {
    return 10.0 * (shared + (longest - shared) * sequences) + 100.0 * sequences;
  }
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override {
    Require(prefill_tokens + sequences > 0, "scratch of a step without tokens");
    return 7.0 * prefill_tokens + 3.0 * sequences;
  }
  double PrefillSeconds(int64_t t) const override { return 1e-6 * (100 + t); }
  double MultiplyAdds(int64_t t) const override { return 100.0 + t; }
  double DecodeSeconds(int64_t t) const override { return 2e-6 * (100 + t); }
  double StepSeconds() const override { return 1e-4; }
};

}  // namespace

// State shared by forks.
struct ToySource {
  ToySource(models::EncoderSequence read, ToyCounts& alive)
      : document(std::move(read)), unencoded(document.tokens()), counts(alive) {
    ++counts.documents;
    for (const int32_t t : document.wanted) states.push_back(static_cast<float>(document.ids[t]));
  }
  ~ToySource() { --counts.documents; }

  const models::EncoderSequence document;
  int unencoded;
  std::vector<float> states;  // [tokens, 1], if wanted: the ids.
  ToyCounts& counts;
};

class ToySequence final : public models::DecoderSequence {
 public:
  ToySequence(ToyDecoder& decoder, std::vector<int32_t> tokens,
              std::shared_ptr<ToySource> source = nullptr)
      : decoder_(decoder), tokens_(std::move(tokens)), source_(std::move(source)) {
    ++decoder_.counts()->sequences;
  }
  ~ToySequence() override { --decoder_.counts()->sequences; }

  int tokens() const override {
    Require(!broken_, "a sequence of an unfinished step was used");
    return static_cast<int>(tokens_.size());
  }

  std::unique_ptr<models::DecoderSequence> Fork() const override {
    Require(!broken_, "a sequence of an unfinished step was forked");
    ++decoder_.counts()->forks;
    return std::make_unique<ToySequence>(decoder_, tokens_, source_);
  }

  void CachePrefix(uint64_t space) override {
    const auto alignment = static_cast<size_t>(decoder_.options_.prefill_alignment);
    std::vector<int32_t> beginning = tokens_;
    for (beginning.resize(beginning.size() / alignment * alignment); !beginning.empty();
         beginning.resize(beginning.size() - alignment)) {
      decoder_.cached_prefixes_.emplace(space, beginning);
    }
  }

  int unencoded() const override { return source_ == nullptr ? 0 : source_->unencoded; }
  std::vector<std::byte> TakeEncoderStates() override {
    if (source_ == nullptr) return {};
    const auto states = std::as_bytes(std::span(source_->states));
    return {states.begin(), states.end()};
  }

  // From a step's begin to its end.
  void set_broken(bool broken) { broken_ = broken; }
  bool broken() const { return broken_; }

  std::vector<float> Read(const DecoderFeed& feed) {
    const bool prefill = feed.phase == DecoderPhase::kPrefill;
    Require(!feed.tokens.empty() || feed.encode > 0, "an empty feed");
    Require(feed.encode >= 0 && feed.encode <= unencoded(), "more than the document has left");
    Require(feed.encode % decoder_.options_.prefill_alignment == 0 || feed.encode == unencoded(),
            "a document read in unaligned chunks");
    if (feed.encode > 0) {
      source_->unencoded -= feed.encode;
      decoder_.counts()->encoded += feed.encode;
      if (feed.tokens.empty()) return {};
    }
    Require(unencoded() == 0, "tokens before the document was read");
    Require(prefill || feed.tokens.size() == 1, "decoding more than one token");
    Require(!prefill || tokens_.size() % decoder_.options_.prefill_alignment == 0,
            "prefill does not begin at the alignment");
    Require(tokens_.size() + feed.tokens.size() <= static_cast<size_t>(decoder_.max_tokens()),
            "more tokens than the limit");
    (prefill ? decoder_.counts()->prefilled : decoder_.counts()->decoded) += feed.tokens.size();
    std::vector<float> rows;
    std::vector<int32_t> seen;
    if (source_ != nullptr) seen = source_->document.ids;
    seen.insert(seen.end(), tokens_.begin(), tokens_.end());
    for (size_t i = 0; i < feed.tokens.size(); ++i) {
      tokens_.push_back(feed.tokens[i]);
      seen.push_back(feed.tokens[i]);
      const bool last = i + 1 == feed.tokens.size();
      if (feed.wanted == WantedLogits::kAll || (feed.wanted == WantedLogits::kLast && last)) {
        const std::vector<float> row = ToyLogits(seen);
        rows.insert(rows.end(), row.begin(), row.end());
      }
    }
    return rows;
  }

 private:
  ToyDecoder& decoder_;
  std::vector<int32_t> tokens_;
  const std::shared_ptr<ToySource> source_;
  bool broken_ = false;
};

namespace {

// Documents are bytes as they come, with global tokens that mean nothing.
class ToyEncoder final : public models::EncoderStage, public models::SequenceRules {
 public:
  explicit ToyEncoder(ToyDecoder& decoder, const ToyOptions& options)
      : decoder_(decoder), max_tokens_(options.source_tokens) {
    facts_.architecture = "ToyForConditionalGeneration";
    facts_.vocab = kToyVocab;
    facts_.width = 1;
    facts_.max_tokens = max_tokens_;
    facts_.global_attention = true;
    facts_.head_reads = models::RowsRead::kNone;
  }

  const models::EncoderFacts& facts() const override { return facts_; }
  absl::Status Place(const std::string&, models::EncoderSequence&) const override {
    return absl::OkStatus();
  }
  const models::SequenceRules& rules() const override { return *this; }
  int max_tokens() const override { return max_tokens_; }
  int width() const override { return 1; }
  std::unique_ptr<models::DecoderSequence> Open(const models::EncoderSequence& document) override {
    return std::make_unique<ToySequence>(decoder_, std::vector<int32_t>(),
                                         std::make_shared<ToySource>(document, *decoder_.counts()));
  }
  models::DocumentCost Cost(const models::EncoderSequence& document) const override {
    ++decoder_.counts()->costed;
    return {1000.0 * document.tokens(), 50.0 * document.tokens(), 1e-5 * document.tokens()};
  }
  double AttendSeconds(int64_t tokens) const override { return 1e-7 * tokens; }
  double AttendMultiplyAdds(int64_t tokens) const override { return 10.0 * tokens; }

 private:
  ToyDecoder& decoder_;
  const int max_tokens_;
  models::EncoderFacts facts_;
};

std::unique_ptr<models::EncoderStage> MakeEncoder(ToyDecoder& decoder, const ToyOptions& options) {
  if (options.source_tokens == 0) return nullptr;
  return std::make_unique<ToyEncoder>(decoder, options);
}

}  // namespace

namespace {

class ToyStep final : public models::DecoderStep {
 public:
  ToyStep(std::span<const DecoderFeed> feeds, ToyCounts& counts)
      : feeds_(feeds.begin(), feeds.end()), rows_(feeds.size()), dropped_(feeds.size()) {
    ++counts.steps;
    fails_ = counts.fail.exchange(false);
    std::set<const models::DecoderSequence*> distinct;
    for (const DecoderFeed& feed : feeds_) {
      Require(distinct.insert(feed.sequence).second, "one sequence twice in a step");
      Require(!Of(feed).broken(), "a sequence of an unfinished step was fed");
      Of(feed).set_broken(true);
    }
  }

  bool Advance() override {
    if (fails_) {
      status_ = absl::ResourceExhaustedError("toy decoder: told to fail");
      return false;
    }
    if (++layer_ < 3) return true;
    for (size_t f = 0; f < feeds_.size(); ++f) {
      if (dropped_[f]) continue;
      Of(feeds_[f]).set_broken(false);
      const int before = feeds_[f].sequence->tokens();
      rows_[f] = Of(feeds_[f]).Read(feeds_[f]);
      if (feeds_[f].sink != nullptr && !rows_[f].empty()) TellSink(feeds_[f], before, rows_[f]);
    }
    return false;
  }
  void Drop(int feed) override { dropped_[static_cast<size_t>(feed)] = true; }
  std::span<const float> Logits(int feed) const override {
    const std::vector<float>& rows = rows_[static_cast<size_t>(feed)];
    Require(!rows.empty(), "logits that were not wanted");
    return rows;
  }
  absl::Status status() const override { return status_; }

 private:
  // In two parts, then the last row stays.
  static void TellSink(const DecoderFeed& feed, int position, std::vector<float>& rows) {
    const auto tokens = static_cast<int>(feed.tokens.size());
    const int first = tokens / 2;
    const auto values = std::span<const float>(rows);
    if (first > 0) feed.sink->Add(position, values.first(static_cast<size_t>(first) * kToyVocab));
    feed.sink->Add(position + first, values.subspan(static_cast<size_t>(first) * kToyVocab));
    rows.erase(rows.begin(), rows.end() - kToyVocab);
  }

  static ToySequence& Of(const DecoderFeed& feed) {
    return static_cast<ToySequence&>(*feed.sequence);
  }

  std::vector<DecoderFeed> feeds_;
  std::vector<std::vector<float>> rows_;
  std::vector<bool> dropped_;
  bool fails_ = false;
  int layer_ = 0;
  absl::Status status_;
};

}  // namespace

std::vector<float> ToyLogits(std::span<const int32_t> tokens) {
  uint64_t state = 1;
  for (const int32_t id : tokens.last(std::min<size_t>(3, tokens.size()))) {
    state = Mix(state + static_cast<uint64_t>(id) + 1);
  }
  std::vector<float> logits(kToyVocab);
  for (int id = 0; id < kToyVocab; ++id) {
    state = Mix(state + static_cast<uint64_t>(id) + 7);
    const float noise = static_cast<float>(state % 4001) / 1000.0F;
    const bool letter = (id >= 'a' && id <= 'z') || id == ' ';
    logits[static_cast<size_t>(id)] = noise + (letter ? 2.0F : id == kToyEnd ? 0.5F : -4.0F);
  }
  return logits;
}

absl::StatusOr<std::vector<int32_t>> ToyCodec::Encode(std::string_view text) const {
  std::vector<int32_t> ids;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0xff) return absl::InvalidArgumentError("byte 0xff is not text");
    ids.push_back(byte);
  }
  return ids;
}

std::string ToyCodec::Bytes(int32_t id) const {
  return id >= 0 && id < 256 ? std::string(1, static_cast<char>(id)) : std::string();
}

ToyDecoder::ToyDecoder(const ToyOptions& options)
    : options_(options),
      costs_(std::make_unique<ToyCosts>()),
      encoder_(MakeEncoder(*this, options)) {}

std::unique_ptr<models::DecoderSequence> ToyDecoder::Open(std::span<const int32_t> prompt,
                                                          uint64_t space) {
  std::vector<int32_t> found;
  const auto alignment = static_cast<size_t>(options_.prefill_alignment);
  for (size_t size = alignment; size < prompt.size(); size += alignment) {
    std::vector<int32_t> beginning(prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(size));
    if (cached_prefixes_.count({space, beginning}) == 0) break;
    found = std::move(beginning);
  }
  return std::make_unique<ToySequence>(*this, std::move(found));
}

std::unique_ptr<models::DecoderStep> ToyDecoder::Begin(std::span<const DecoderFeed> feeds) {
  return std::make_unique<ToyStep>(feeds, *counts_);
}

std::vector<int32_t> ToyDecoder::Greedy(std::vector<int32_t> prompt, int tokens) {
  std::vector<int32_t> generated;
  while (static_cast<int>(generated.size()) < tokens) {
    const std::vector<float> logits = ToyLogits(prompt);
    const int32_t id = models::FindPeak(logits).id;
    generated.push_back(id);
    prompt.push_back(id);
    if (id == kToyEnd) break;
  }
  return generated;
}

}  // namespace longview::testing
