// A pass over a decoder's layers on the host.
#pragma once

#include <memory>

#include "models/forward/host_runner.h"
#include "models/generation/decoder/pass_step.h"
#include "models/generation/passes/token_forward.h"

namespace longview::models {

// Used by the executor's thread; throws what LibTorch and the allocator throw.
class HostTokenPass final : public TokenPass {
 public:
  // REQUIRES: context and scratch outlive it. `times` is added to, unless null. The forward makes
  // all its rows of logits at once.
  HostTokenPass(std::unique_ptr<TokenForward> forward, const ComputeContext& context,
                ScratchPool& scratch, RunTimes* times);

  // Exact bytes of scratch and of the library's results.
  static double WorkspaceBytes(TokenForward& forward, const ComputeContext& context);

  absl::Status Begin() override;
  bool Advance() override;

 private:
  const std::unique_ptr<TokenForward> forward_;
  HostRunner runner_;
};

}  // namespace longview::models
