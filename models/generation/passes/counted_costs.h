// The cost of a decoder's tokens, from counting its forward: operations of chunks of prefill at
// rising positions when the model loads, bytes of a step when they are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/cache/cache_shape.h"
#include "models/cost/work.h"
#include "models/generation/decoder/decoder_rates.h"
#include "models/generation/passes/token_forward.h"
#include "models/layers/compute_context.h"

namespace longview::models {

class CountedCosts final : public RatedCosts {
 public:
  // A forward of these runs, with so many rows of logits at a time.
  using Make =
      std::function<std::unique_ptr<TokenForward>(std::vector<TokenRun> runs, int64_t logit_rows)>;
  struct Terms {
    kernels::CacheShape shape;
    Compute compute = Compute::kFp32;
    // Context of the forward on the host; null: it runs on a device, whose memory is taken when the
    // model loads. Then the costs are rows of logits, on the host.
    const ComputeContext* host = nullptr;
    int vocab = 0;
    int max_tokens = 0;
    int prefill_alignment = 0;
    int64_t costliest = 0;   // The position where a decode step needs most memory.
    double attend_work = 0;  // Counted of each token, but no part of AttentionWork.
    std::function<double(int64_t tokens)> table_bytes = {};  // Unset: there are no such tables.
  };

  // From weights that have sizes.
  CountedCosts(Make make, Terms terms);

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override;
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double TableBytes(int64_t tokens) const override {
    return terms_.table_bytes ? terms_.table_bytes(tokens) : 0;
  }
  double LinearWork() const override { return linear_; }  // Logits aside.
  double AttentionWork(int64_t t) const override;
  double RowWork() const override { return rows_; }

 private:
  struct Point {
    double position = 0;
    double attention = 0;  // Work of a token there.
  };
  EncoderWork WorkOf(int64_t start, int64_t tokens) const;

  const Make make_;
  const Terms terms_;
  double linear_ = 0, rows_ = 0;
  std::vector<Point> points_;  // By rising position; at least one.
};

}  // namespace longview::models
