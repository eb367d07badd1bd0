#include "models/ops/host_backend.h"

#include "models/dense/row_linear.h"

namespace longview::models {

HostBackend::HostBackend(const ComputeContext& context, const ForwardNeed& need, std::byte* memory,
                         RunTimes* times)
    : Backend({context.compute, context.tile_rows(), kPanelRows, /*zeroes_tails=*/true,
               context.block_type()},
              this, memory),
      context_(context),
      kernels_(ChooseRowKernels(context.compute)),
      floats_(ChooseRowKernels(Compute::kFp32)),
      scratch_(memory == nullptr ? nullptr : memory + need.buffers),
      times_(times) {}

HostBackend::HostBackend(const ComputeContext& context)
    : HostBackend(context, ForwardNeed(), nullptr, nullptr) {}

std::byte* HostBackend::TakeProducts(const Weight& weight, const Rows& in, Carver& scratch) const {
  if (!in.few) return nullptr;
  return scratch.TakeBytes(RowLinear::ScratchBytes(weight.out, weight.in, compute()));
}

const float* HostBackend::Zeros(int64_t width) {
  if (static_cast<int64_t>(zeros_.size()) < width) zeros_.resize(static_cast<size_t>(width));
  return zeros_.data();
}

}  // namespace longview::models
