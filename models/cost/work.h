// The cost of a document: operations in closed form by what limits them, seconds by rates that are
// measured at warm-up.
#pragma once

#include "models/cost/stopwatch.h"

namespace longview::models {

struct EncoderWork {
  double linear = 0;     // Multiply-adds of linears.
  double attention = 0;  // Multiply-adds of scores and weighted sums.
  double rows = 0;       // Elements of biases, activations, norms.

  double MultiplyAdds() const { return linear + attention; }

  EncoderWork& operator+=(const EncoderWork& other) {
    linear += other.linear;
    attention += other.attention;
    rows += other.rows;
    return *this;
  }
};

// Measured on this machine by WarmUp; before it, a guess that errs on the slow side.
struct EncoderRates {
  double fixed_seconds = 2e-4;      // Per run.
  double linear_seconds = 1 / 5e9;  // Per multiply-add.
  double attention_seconds = 1 / 2e9;
  double row_seconds = 1 / 2e8;

  double Seconds(const EncoderWork& work) const {
    return fixed_seconds + work.linear * linear_seconds + work.attention * attention_seconds +
           work.rows * row_seconds;
  }
};

}  // namespace longview::models
