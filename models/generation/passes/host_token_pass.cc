#include "models/generation/passes/host_token_pass.h"

#include <algorithm>
#include <utility>

#include "models/status_macros.h"

namespace longview::models {
namespace {

ForwardNeed NeedOnHost(TokenForward& forward, const ComputeContext& context) {
  HostBackend count(context);
  CountForward(forward, forward.wanted(), count);
  return count.need();
}

}  // namespace

void CountForward(TokenForward& forward, int64_t logit_rows, Backend& count) {
  forward.Stage(count);
  forward.Take(count);
  forward.Embed(count);
  for (int layer = 0; layer < forward.layers(); ++layer) {
    if (!forward.RepeatsEarlier(layer)) forward.Layer(count, layer);
  }
  const int64_t rows = std::min(logit_rows, forward.wanted());
  if (rows > 0) forward.Logits(count, 0, rows);
}

HostTokenPass::HostTokenPass(std::unique_ptr<TokenForward> forward, const ComputeContext& context,
                             ScratchPool& scratch, RunTimes* times)
    : forward_(std::move(forward)),
      runner_(*forward_, NeedOnHost(*forward_, context), context, scratch, times) {}

double HostTokenPass::WorkspaceBytes(TokenForward& forward, const ComputeContext& context) {
  const ForwardNeed need = NeedOnHost(forward, context);
  return static_cast<double>(need.memory() + need.transient);
}

absl::Status HostTokenPass::Begin() {
  RETURN_IF_ERROR(forward_->Append());
  runner_.Begin();
  return absl::OkStatus();
}

bool HostTokenPass::Advance() {
  if (runner_.Advance()) return true;
  const int64_t wanted = forward_->wanted();
  if (wanted > 0) forward_->Logits(runner_.backend(), 0, wanted);
  forward_->End();
  return false;
}

}  // namespace longview::models
