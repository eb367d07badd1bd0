// A decoder's forward over the next tokens of several sequences: prefill and decoding together.
// Run by host_token_pass.h and device_token_pass.h.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "models/forward/forward.h"
#include "models/generation/decoder/token_run.h"

namespace longview::models {

// Embed, Layer and Logits only call operations: where a recording is launched
// (device_token_pass.h), they are not asked.
class TokenForward : public Forward {
 public:
  // In the order of their rows.
  virtual std::span<const TokenRun> runs() const = 0;
  int64_t wanted() const { return WantedRows(runs()); }
  // Whether an earlier layer needs as much of everything: counting needs leaves this one out.
  virtual bool RepeatsEarlier(int layer) const = 0;

  // Gives the sequences memory for their tokens, before Stage; left out where a forward is only
  // counted. RESOURCE_EXHAUSTED where it was not reserved; the sequences must then be destroyed.
  virtual absl::Status Append() = 0;
  // Makes wanted rows first .. first + count - 1: in the runs' `logits`, or, where a device
  // computes, in the rows returned, [count, V] fp32 until the next call. REQUIRES: count is at most
  // what the forward was made for.
  virtual Rows Logits(Backend& backend, int64_t first, int64_t count) = 0;
  // Ends the cache's step.
  virtual void End() = 0;
};

// Runs the forward on a fresh `count`, which then holds its need, with `logit_rows` rows of logits
// at a time.
void CountForward(TokenForward& forward, int64_t logit_rows, Backend& count);

}  // namespace longview::models
