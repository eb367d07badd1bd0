#include "tests/support/fake_generation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace longview::testing {
namespace {

uint64_t Absorb(uint64_t state, std::string_view text) {
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return state;
}

char LetterAfter(uint64_t state) { return static_cast<char>('a' + (state >> 29) % 26); }

uint64_t StateOf(std::string_view prompt, int index) {
  return Absorb(14695981039346656037u + static_cast<uint64_t>(index) * 977u, prompt);
}

}  // namespace

std::string FakeContinuation(std::string_view prompt, int index, int tokens) {
  uint64_t state = StateOf(prompt, index);
  std::string text;
  for (int i = 0; i < tokens; ++i) {
    text += LetterAfter(state);
    state = Absorb(state, std::string_view(text).substr(text.size() - 1));
  }
  return text;
}

void CountedBytes::Set(double bytes) {
  const auto change = static_cast<int64_t>(bytes - bytes_);
  const int64_t sum = control_->state_bytes.fetch_add(change) + change;
  int64_t most = control_->max_state_bytes;
  while (sum > most && !control_->max_state_bytes.compare_exchange_weak(most, sum)) {
  }
  bytes_ = bytes;
}

void ThreadCheck::Use() {
  if (std::this_thread::get_id() != owner_) ++control_->thread_changes;
}

FakeDocument::FakeDocument(ControlPtr control, double token_bytes)
    : control_(control), token_bytes_(token_bytes), held_(control), thread_(control) {
  ++control_->live_documents;
}

FakeDocument::~FakeDocument() {
  thread_.Use();
  --control_->live_documents;
}

void FakeDocument::Read(std::string_view more) {
  thread_.Use();
  text_.append(more);
  held_.Set(token_bytes_ * tokens());
}

GeneratorItem::GeneratorItem(models::Request item_request, std::string item_prompt,
                             models::Cost cost, ControlPtr control)
    : request(std::move(item_request)), prompt(std::move(item_prompt)), control_(control) {
  cost_ = cost;
  usage_.input_tokens = static_cast<int>(prompt.size());
  ++control_->live_items;
}

int GeneratorItem::samples() const { return request.generation->num_return_sequences.value_or(1); }

int GeneratorItem::max_new_tokens() const {
  return request.generation->max_new_tokens.value_or(16);
}

FakeGeneration::FakeGeneration(const GeneratorItem& item, const GeneratorOptions& options)
    : item_(item),
      options_(options),
      to_read_(static_cast<int>(item.prompt.size())),
      held_(options.control),
      thread_(options.control) {
  ++options_.control->live_generations;
  if (item.request.document && !item.request.extend_document) {
    context_ = static_cast<const FakeDocument&>(*item.request.document).text();
  }
  const int most = std::min(options.cached_tokens, to_read_ - 1) / options.prefill_alignment;
  cached_ = std::max(0, most * options.prefill_alignment);
  to_read_ -= cached_;
  context_ += item.prompt.substr(0, static_cast<size_t>(cached_));
  CountBytes();
}

FakeGeneration::~FakeGeneration() {
  thread_.Use();
  --options_.control->live_generations;
}

models::Generation::Need FakeGeneration::need() const {
  const int samples = item_.request.extend_document ? 0 : item_.samples();
  return {.prefill = to_read_,
          .sequences = samples,
          .prefill_seconds = options_.prefill_seconds,
          .decode_seconds = options_.decode_seconds * samples,
          .prompt_seconds = to_read_ * options_.prefill_seconds};
}

bool FakeGeneration::done() const {
  if (!failed_.ok()) return true;
  if (to_read_ > 0) return false;
  return std::all_of(sequences_.begin(), sequences_.end(),
                     [](const Sequence& s) { return !s.whole.finish_reason.empty(); });
}

void FakeGeneration::Step(int prefill) {
  thread_.Use();
  if (item_.prompt.find(options_.fail_step) != std::string::npos) {
    throw std::runtime_error("fake failure of a step");
  }
  if (to_read_ > 0) {
    if (prefill < 1 || prefill > to_read_ ||
        (prefill % options_.prefill_alignment && prefill != to_read_)) {
      throw std::logic_error("a grant that breaks the contract of StepGrant");
    }
    const auto at = item_.prompt.size() - static_cast<size_t>(to_read_);
    const std::string more = item_.prompt.substr(at, static_cast<size_t>(prefill));
    if (item_.request.extend_document) {
      static_cast<FakeDocument&>(*item_.request.document).Read(more);
    } else {
      context_ += more;
    }
    to_read_ -= prefill;
    options_.control->prefilled += prefill;
    if (to_read_ == 0) FinishPrompt();
  } else {
    if (prefill != 0) throw std::logic_error("prefill granted, but nothing is left to read");
    for (Sequence& sequence : sequences_) {
      if (sequence.whole.finish_reason.empty()) Sample(sequence);
    }
  }
  CountBytes();
}

void FakeGeneration::FinishPrompt() {
  if (item_.request.extend_document) return;
  for (int i = 0; i < item_.samples(); ++i) {
    Sequence sequence;
    sequence.whole.index = i;
    sequence.state = StateOf(context_, i);
    sequences_.push_back(std::move(sequence));
    if (scoring()) {
      sequences_.back().whole.finish_reason = "length";
    } else {
      Sample(sequences_.back());
    }
  }
}

void FakeGeneration::Sample(Sequence& sequence) {
  models::Piece& whole = sequence.whole;
  const char letter = LetterAfter(sequence.state);
  sequence.state = Absorb(sequence.state, std::string_view(&letter, 1));
  ++options_.control->decoded;
  sequence.text += letter;
  whole.text = sequence.text;
  whole.token_ids.push_back(letter);
  if (const auto& alternatives = item_.request.generation->logprobs) {
    whole.logprobs.push_back({letter, -0.5f, std::string(1, letter)});
    whole.top.emplace_back();
    for (int k = 0; k < *alternatives; ++k) {
      const char other = static_cast<char>('a' + (letter - 'a' + k) % 26);
      whole.top.back().push_back({other, -0.5f - static_cast<float>(k), std::string(1, other)});
    }
  }
  whole.score = -0.5f * static_cast<float>(whole.token_ids.size());
  for (const std::string& stop : item_.request.generation->stop) {
    const size_t found = sequence.text.find(stop);
    if (found == std::string::npos) continue;
    whole.text.resize(found);
    whole.finish_reason = "stop";
    return;
  }
  if (static_cast<int>(whole.token_ids.size()) == item_.max_new_tokens()) {
    whole.finish_reason = "length";
  }
}

// How much of the text cannot become part of a stop string any more.
size_t FakeGeneration::Releasable(const Sequence& sequence) const {
  const std::string& text = sequence.whole.text;
  if (!sequence.whole.finish_reason.empty()) return text.size();
  size_t held = 0;
  for (const std::string& stop : item_.request.generation->stop) {
    for (size_t n = std::min(stop.size(), text.size()); n > held; --n) {
      if (text.compare(text.size() - n, n, stop, 0, n) == 0) held = n;
    }
  }
  return text.size() - held;
}

std::vector<models::Piece> FakeGeneration::TakePieces() {
  std::vector<models::Piece> pieces;
  if (item_.request.extend_document || to_read_ > 0) return pieces;
  if (item_.request.generation->echo && !std::exchange(echo_given_, true)) {
    models::Piece piece;
    piece.echo = true;
    piece.text = item_.prompt;
    piece.token_ids.assign(item_.prompt.begin(), item_.prompt.end());
    pieces.push_back(std::move(piece));
  }
  if (beams() && !done()) return pieces;
  for (Sequence& sequence : sequences_) {
    const models::Piece& whole = sequence.whole;
    const auto since = static_cast<std::ptrdiff_t>(sequence.given_tokens);
    const bool ended = !whole.finish_reason.empty();
    if (sequence.given_tokens == whole.token_ids.size() && (!ended || sequence.told_end)) continue;
    sequence.told_end = ended;
    models::Piece piece;
    piece.index = whole.index;
    piece.finish_reason = whole.finish_reason;
    piece.score = whole.score;
    const size_t end = std::max(sequence.given, Releasable(sequence));
    piece.text = whole.text.substr(sequence.given, end - sequence.given);
    piece.token_ids.assign(whole.token_ids.begin() + since, whole.token_ids.end());
    if (!whole.logprobs.empty()) {
      piece.logprobs.assign(whole.logprobs.begin() + since, whole.logprobs.end());
      piece.top.assign(whole.top.begin() + since, whole.top.end());
    }
    sequence.given = end;
    sequence.given_tokens = whole.token_ids.size();
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

absl::StatusOr<models::Answer> FakeGeneration::Take() {
  thread_.Use();
  if (!failed_.ok()) return failed_;
  if (item_.prompt.find(options_.fail_take) != std::string::npos) {
    return absl::InternalError("fake failure of Take");
  }
  models::Answer answer;
  answer.usage = item_.usage();
  answer.usage.cached_tokens = cached_;
  for (const Sequence& sequence : sequences_) {
    answer.sequences.push_back(sequence.whole);
    answer.usage.output_tokens += static_cast<int>(sequence.whole.token_ids.size());
  }
  if (item_.request.extend_document || !item_.request.generation->echo) return answer;
  models::Piece& prompt = answer.prompt.emplace();
  prompt.echo = true;
  prompt.text = item_.prompt;
  prompt.token_ids.assign(item_.prompt.begin(), item_.prompt.end());
  if (item_.request.generation->logprobs) {
    prompt.top.resize(item_.prompt.size());
    for (const char c : item_.prompt) {
      const float none = std::numeric_limits<float>::quiet_NaN();
      prompt.logprobs.push_back({c, prompt.logprobs.empty() ? none : -1.5f, std::string(1, c)});
    }
  }
  return answer;
}

void FakeGeneration::CountBytes() {
  if (item_.request.extend_document) return;
  size_t tokens = context_.size();
  for (const Sequence& sequence : sequences_) tokens += sequence.whole.token_ids.size();
  held_.Set(options_.token_bytes * static_cast<double>(tokens));
}

}  // namespace longview::testing
