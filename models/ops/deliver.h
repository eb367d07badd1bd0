// Rows that leave a forward for the host, such as logits.
#pragma once

#include <cstdint>
#include <span>

#include "models/ops/backend.h"
#include "models/ops/project.h"

namespace longview::models {

// Rows that a device writes in place of the host's memory, for whoever runs the forward to bring;
// none on the host.
Rows TakeDelivered(Backend& backend, int64_t count, int64_t width);

// The probabilities of an adaptive softmax (Grave et al. 2017): log p of every word, out [V], from
// the scores of all words and, behind them, of the tails [V + k]: log p(w) = log p_head(w) before
// the first cut-off, else log p_head(tail of w) + log p_tail(w). `cutoffs` are the tails' first
// words.
void AdaptiveLogProbabilities(std::span<const float> scores, std::span<const int32_t> cutoffs,
                              std::span<float> out);

namespace ops {

// in W^T + b in fp32: row i goes to to[i] of the host's memory. A device writes `out` instead.
struct Deliver {
  const Weight& weight;
  Rows in;
  Rows out;
  std::span<float* const> to;

  OpWork Work() const { return ProductWork(weight, in); }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// Deliver of an adaptive softmax's scores (Grave et al. 2017), which become natural-log
// probabilities of its words; `cutoffs` are the first words of its tails.
struct DeliverAdaptive {
  const Weight& weight;
  IndexRef cutoffs;
  Rows in;
  Rows out;
  std::span<float* const> to;

  OpWork Work() const { return ProductWork(weight, in); }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
