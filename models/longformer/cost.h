// What a document costs: operations in closed form, bytes exactly, seconds by rates measured at
// warm-up.
#pragma once

#include <array>
#include <span>

#include "models/longformer/config.h"
#include "models/longformer/encoder.h"
#include "models/longformer/sequence.h"

namespace longview::models {

// Operations by what limits them.
struct LongformerWork {
  double linear = 0;     // Multiply-adds of linears.
  double attention = 0;  // Multiply-adds of scores and sums: window, global columns and rows.
  double rows = 0;       // Elements of biases, activations, norms.
};

// Per layer 4 n H^2 for local projections and output, 2 n H I, 2 H per visible pair; global rows
// folded (2 g n H A) or projected (2 n H^2 more); the last layer for the wanted rows only.
LongformerWork WorkOf(const LongformerConfig& config, const LongformerSequence& sequence);

// Multiply-adds of the task's head.
double HeadWork(const LongformerConfig& config, double logit_floats);

// Measured on this machine by WarmUp; before it, a guess that errs on the slow side.
struct LongformerRates {
  double fixed_seconds = 2e-4;      // Per run.
  double linear_seconds = 1 / 5e9;  // Per multiply-add.
  double attention_seconds = 1 / 2e9;
  double row_seconds = 1 / 2e8;

  double Seconds(const LongformerWork& work) const {
    return fixed_seconds + work.linear * linear_seconds + work.attention * attention_seconds +
           work.rows * row_seconds;
  }
};

}  // namespace longview::models
