#include "models/generation/host_token_pass.h"

#include <algorithm>
#include <utility>

namespace longview::models {
namespace {

OpsNeed CountOnHost(TokenForward& forward, const ComputeContext& context) {
  HostCount count(context);
  CountForward(forward, forward.wanted(), count);
  return count.need();
}

}  // namespace

void CountForward(TokenForward& forward, int64_t logit_rows, Ops& count) {
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
                             ScratchKeeper& scratch, EncoderTimes* times)
    : forward_(std::move(forward)),
      need_(CountOnHost(*forward_, context)),
      scratch_(scratch, need_.memory()),
      ops_(context, need_, scratch_.data(), times) {}

double HostTokenPass::WorkspaceBytes(TokenForward& forward, const ComputeContext& context) {
  const OpsNeed need = CountOnHost(forward, context);
  return static_cast<double>(need.memory() + need.transient);
}

absl::Status HostTokenPass::Begin() {
  if (absl::Status status = forward_->Append(); !status.ok()) return status;
  forward_->Stage(ops_);
  forward_->Take(ops_);
  return absl::OkStatus();
}

bool HostTokenPass::Advance() {
  if (layer_ == 0) forward_->Embed(ops_);
  forward_->Layer(ops_, layer_);
  if (++layer_ < forward_->layers()) return true;
  if (const int64_t wanted = forward_->wanted(); wanted > 0) forward_->Logits(ops_, 0, wanted);
  forward_->End();
  return false;
}

}  // namespace longview::models
