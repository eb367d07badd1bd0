// Seconds of reading and sampling tokens: a family's operations in closed form times rates measured
// at warm-up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/cost/stopwatch.h"
#include "models/generation/decoder/decoder.h"

namespace longview::models {

// Measured on this machine by CalibrateDecoder; before it, guesses that err on the slow side.
struct DecoderRates {
  double step_seconds = 1e-2;       // A step of one token without its attention: weights are read.
  double linear_seconds = 1 / 5e9;  // Per multiply-add of many rows.
  double prefill_attention = 1 / 2e9;
  double decode_attention = 1 / 1e9;
  double row_seconds = 1 / 2e8;
};

// The best of two moments: neighbours make work slower, never faster.
DecoderRates BestOf(const DecoderRates& a, const DecoderRates& b);

// Thread-safe, once the rates are set.
class RatedCosts : public DecoderCosts {
 public:
  // Work of one token in all layers.
  virtual double LinearWork() const = 0;              // Multiply-adds of linears.
  virtual double AttentionWork(int64_t t) const = 0;  // Scores and sums of a token at position t.
  virtual double RowWork() const = 0;  // Elements of biases, activations, norms, pools.

  const DecoderRates& rates() const { return rates_; }
  // Ends one measurement: from here on the best of all of them count. Before serving only.
  void AddMoment(const DecoderRates& rates) {
    rates_ = measured_ ? BestOf(rates_, rates) : rates;
    measured_ = true;
  }
  bool measured() const { return measured_; }

  double PrefillSeconds(int64_t t) const final {
    return LinearWork() * rates_.linear_seconds + AttentionWork(t) * rates_.prefill_attention +
           RowWork() * rates_.row_seconds;
  }
  double DecodeSeconds(int64_t t) const final {
    return AttentionWork(t) * rates_.decode_attention + RowWork() * rates_.row_seconds;
  }
  double StepSeconds() const final { return rates_.step_seconds; }
  double MultiplyAdds(int64_t t) const final { return LinearWork() + AttentionWork(t); }

 private:
  DecoderRates rates_;
  bool measured_ = false;
};

struct Calibration {
  Decoder& decoder;
  RatedCosts& costs;    // The decoder's costs.
  double capacity = 0;  // Bytes of state there is room for.
  // Makes steps add their seconds to what it is given; null: to nothing.
  std::function<void(RunTimes*)> set_times;
  // A sequence that has read none of its own tokens, each of which attends to a document with so
  // many multiply-adds beside AttentionWork; unset: decoder.OpenEmpty().
  std::function<absl::StatusOr<std::unique_ptr<DecoderSequence>>()> open = {};
  double attend_work = 0;
};

// Reads a prompt long enough to fill panels and windows (less where `capacity` or the decoder's
// limit leave no room; too little room: rates stay), then single tokens behind it: what these take
// beyond attention is the reading of the weights. Called again, it adds another moment.
absl::Status CalibrateDecoder(const Calibration& calibration);

// Seconds of one step.
absl::StatusOr<double> TimeStep(Decoder& decoder, const DecoderFeed& feed);

}  // namespace longview::models
