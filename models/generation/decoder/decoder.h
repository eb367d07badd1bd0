// The interface of a family of generating models: sequences that remember what they have read,
// and a step that reads more tokens of several of them at once. Everything else of generation
// (options, sampling, beams, stopping, text, requests) is built on this and is the same for all.
//
// Used by the executor's thread, except where a method says thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "models/generation.h"

namespace longview::models {

class EncoderStage;  // encoder_stage.h
struct ChosenToken;  // token_choice.h
struct TokenChoice;

// The state of one sequence. Destroying it gives its memory back.
class DecoderSequence {
 public:
  virtual ~DecoderSequence() = default;

  virtual int tokens() const = 0;  // Read so far.

  // A second sequence in the same state; shares all memory that neither writes.
  virtual std::unique_ptr<DecoderSequence> Fork() const = 0;

  // The state so far is that of a whole prompt or document: keeps, as long as there is room, what a
  // later request of the same cache space with the same beginning needs.
  virtual void CachePrefix(uint64_t space) = 0;

  // With an encoder: tokens of its document that are still to be read, before any of its own; and
  // the document's last hidden states [tokens, width], fp32, once it is read, if they were wanted.
  // They go to the first who takes them.
  virtual int unencoded() const { return 0; }
  virtual std::vector<std::byte> TakeEncoderStates() { return {}; }
};

// Prefill and decode agree within rounding, not in bits (panel sizes differ).
enum class DecoderPhase { kPrefill, kDecode };

enum class WantedLogits { kNone, kLast, kAll };

// Takes rows of logits as they are computed.
class LogitSink {
 public:
  virtual ~LogitSink() = default;
  // [tokens, vocabulary] of the tokens from `position` on. Borrowed for the call.
  virtual void Add(int position, std::span<const float> rows) = 0;
};

// Tokens for one sequence to read in a step.
struct DecoderFeed {
  DecoderSequence* sequence = nullptr;
  std::span<const int32_t> tokens;  // At least one, unless `encode` is; kDecode: exactly one.
  DecoderPhase phase = DecoderPhase::kPrefill;
  WantedLogits wanted = WantedLogits::kLast;
  // Tokens of the sequence's document to read before: at most unencoded(), all of it if there are
  // `tokens` too.
  int encode = 0;
  // How the token after the last one will be chosen, for decoders that can do it themselves; null:
  // the caller does, from the logits. Borrowed until the step is destroyed.
  const TokenChoice* choice = nullptr;
  // With kAll: gets the rows, some thousand at most at a time; Logits then has the last one alone.
  // Null: Logits has all of them. Borrowed until the step is destroyed.
  LogitSink* sink = nullptr;
};

// A step in flight.
class DecoderStep {
 public:
  virtual ~DecoderStep() = default;
  // The next layer; returns whether work is left. Sequences have read their tokens when it
  // returned false, and are in no usable state before.
  virtual bool Advance() = 0;
  // Nobody waits for this feed; its sequence will be destroyed.
  virtual void Drop(int feed) = 0;
  // Not OK (no memory, a failing library): Advance returned false because of it, there are no
  // logits, and the sequences must be destroyed.
  virtual absl::Status status() const { return absl::OkStatus(); }
  // After the last layer: [1 or tokens, vocabulary], fp32. Valid until the step is destroyed.
  virtual std::span<const float> Logits(int feed) const = 0;
  // The token that the decoder chose as the feed said, in place of its logits; null: it did not.
  virtual const ChosenToken* Chosen(int /*feed*/) const { return nullptr; }
};

// Bytes and seconds in closed form. Thread-safe.
class DecoderCosts {
 public:
  virtual ~DecoderCosts() = default;
  // State of `sequences` forks that share `shared` tokens and read up to `longest` tokens each,
  // whole blocks, exact.
  virtual double StateBytes(int64_t shared, int64_t longest, int sequences) const = 0;
  virtual double WorkspaceBytes(int64_t prefill_tokens, int sequences) const = 0;
  // Tables for texts of up to so many tokens, made when the first of them is read, and kept.
  virtual double TableBytes(int64_t /*tokens*/) const { return 0; }
  // Predicted. Of reading one more token (prefill) or sampling one (decode) at position t.
  virtual double PrefillSeconds(int64_t t) const = 0;
  virtual double DecodeSeconds(int64_t t) const = 0;
  // Seconds of a step, beside its tokens.
  virtual double StepSeconds() const = 0;
  // Multiply-adds of reading or sampling a token at position t, logits aside.
  virtual double MultiplyAdds(int64_t t) const = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;

  virtual int vocab_size() const = 0;
  virtual int max_tokens() const = 0;
  // A prefill feed is a multiple of this many tokens, or the last of its prompt. With an encoder:
  // what it reads of a document is.
  virtual int prefill_alignment() const = 0;
  virtual const DecoderCosts& costs() const = 0;

  // A sequence that has read the longest beginning of `prompt` the cache holds in `space`, but not
  // its last token (its logits are wanted). `prompt` empty, or nothing found: an empty sequence.
  virtual std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt,
                                                uint64_t space) = 0;
  std::unique_ptr<DecoderSequence> OpenEmpty() { return Open({}, 0); }

  // REQUIRES: sequences differ, are this decoder's and outlive the step.
  virtual std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) = 0;

  // A decoder with an encoder opens sequences there, over a document; Open is not used. Null: none.
  virtual EncoderStage* encoder() { return nullptr; }

  // Runs a few steps and fixes the constants of costs(). Once, before anything else.
  virtual absl::Status WarmUp() { return absl::OkStatus(); }

  virtual CacheUse cache() const { return {}; }  // Thread-safe.
};

}  // namespace longview::models
