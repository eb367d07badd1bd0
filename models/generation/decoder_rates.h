// Seconds of reading and sampling tokens: a family's operations in closed form times rates measured
// at warm-up.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "models/generation/decoder.h"
#include "models/layers/stopwatch.h"

namespace longview::models {

// What one token costs in all layers. Thread-safe.
class TokenWork {
 public:
  virtual ~TokenWork() = default;
  virtual double Linear() const = 0;              // Multiply-adds of linears.
  virtual double Attention(int64_t t) const = 0;  // Scores and sums of a token at position t.
  virtual double Rows() const = 0;                // Elements of biases, activations, norms, pools.
};

// Measured on this machine by CalibrateDecoder; before it, guesses that err on the slow side.
struct DecoderRates {
  double step_seconds = 1e-2;       // A step of one token without its attention: weights are read.
  double linear_seconds = 1 / 5e9;  // Per multiply-add of many rows.
  double prefill_attention = 1 / 2e9;
  double decode_attention = 1 / 1e9;
  double row_seconds = 1 / 2e8;

  double PrefillSeconds(const TokenWork& work, int64_t t) const {
    return work.Linear() * linear_seconds + work.Attention(t) * prefill_attention +
           work.Rows() * row_seconds;
  }
  double DecodeSeconds(const TokenWork& work, int64_t t) const {
    return work.Attention(t) * decode_attention + work.Rows() * row_seconds;
  }
};

// Reads a prompt long enough to fill panels and windows (less where `capacity` bytes of state or
// the decoder's limit leave no room; too little room: `rates` stay), then single tokens behind it:
// what these take beyond attention is the reading of the weights. `set_times` makes steps add their
// seconds to what it is given, null: to nothing.
absl::Status CalibrateDecoder(Decoder& decoder, const TokenWork& work, double capacity,
                              const std::function<void(EncoderTimes*)>& set_times,
                              DecoderRates& rates);

}  // namespace longview::models
