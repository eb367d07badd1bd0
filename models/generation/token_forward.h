// A decoder's forward over the next tokens of several sequences, written once for every backend:
// prefill and decoding together.
//
// A forward plans when it is made: which rows there are and who sees whom. Then the backend has it
// stage its lists, take its buffers and run its layers. What runs it: host_token_pass.h,
// device_token_pass.h.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "models/generation/token_run.h"
#include "models/ops/ops.h"

namespace longview::models {

// Used by one thread.
class TokenForward {
 public:
  virtual ~TokenForward() = default;

  // In the order of their rows.
  virtual std::span<const TokenRun> runs() const = 0;
  int64_t wanted() const { return WantedRows(runs()); }
  virtual int layers() const = 0;  // At least 1.
  // Whether an earlier layer needs as much of everything: counting leaves this one out.
  virtual bool RepeatsEarlier(int layer) const = 0;

  // ---- In this order ----
  // Gives the sequences memory for their tokens; left out where a forward is only counted.
  // RESOURCE_EXHAUSTED where it was not reserved; the sequences must then be destroyed.
  virtual absl::Status Append() = 0;
  virtual void Stage(Ops& ops) = 0;
  virtual void Take(Ops& ops) = 0;
  // These three only call operations: where a recording is launched (device_token_pass.h), they are
  // not asked.
  virtual void Embed(Ops& ops) = 0;
  virtual void Layer(Ops& ops, int layer) = 0;
  // Makes wanted rows first .. first + count - 1: in the runs' `logits`, or, where a device
  // computes, in the rows returned, [count, V] fp32 until the next call. REQUIRES: count is at most
  // what the forward was made for.
  virtual Rows Logits(Ops& ops, int64_t first, int64_t count) = 0;
  // Ends the cache's step.
  virtual void End() = 0;
};

// Runs the forward on a fresh `count`, which then holds its need, with `logit_rows` rows of logits
// at a time.
void CountForward(TokenForward& forward, int64_t logit_rows, Ops& count);

}  // namespace longview::models
