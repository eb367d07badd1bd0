// A stack without an encoder as a Decoder: language models of one stream.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/cached_decoder.h"
#include "models/parallel.h"
#include "models/stack/cost.h"

namespace longview::models {

class StackDecoder final : public CachedDecoder {
 public:
  struct Parts {
    StackConfig config;
    StackWeights weights;
    std::unique_ptr<const Checkpoint> checkpoint;  // Its tables back the weights.
    Compute compute = Compute::kFp32;
    int max_tokens = 0;
    CacheRoom room = 0;
  };
  // RESOURCE_EXHAUSTED if addresses for `room` cannot be had.
  static absl::StatusOr<std::unique_ptr<StackDecoder>> Create(Parts parts);

  int prefill_granule() const override;

 private:
  explicit StackDecoder(Parts parts);
  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                      EncoderTimes* times) override;

  const Parts parts_;
  TorchParallelFor pool_;
  const DistanceTables tables_;
  StackContext context_;
};

}  // namespace longview::models
