// One pass of several sequences' next tokens over all layers of a stack: prefill and decoding
// together. The residual stream is fp32 in both compute types.
#pragma once

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/pass_step.h"
#include "models/layers/stopwatch.h"
#include "models/stack/context.h"
#include "models/stack/pass_buffers.h"
#include "models/stack/pass_layout.h"

namespace longview::models {

// Used by the executor's thread. The constructor and Advance throw what LibTorch and the
// allocator throw.
class StackPass final : public TokenPass {
 public:
  // Borrowed arguments outlive the pass; `times` is added to, unless null. One pass at a time. With
  // an encoder every run's is a DocumentSequence.
  StackPass(const StackContext& context, ScratchKeeper& scratch, std::vector<TokenRun> runs,
            EncoderTimes* times);

  // Exact bytes of scratch of a pass of this layout, panel results aside.
  static size_t ScratchBytes(const StackContext& context, const StackPassLayout& layout);

  absl::Status Begin() override;
  bool Advance() override;

 private:
  void ClearTail(std::byte* buffer, int64_t rows) const;
  void Embed();
  void Attend(int group);
  void AttendDocuments(const StackLayer::Cross& cross);
  void Write(int group);
  // use(row, y) for every row of y = input W^T: panels of prefill, row products of decoding.
  template <typename Use>
  void Multiply(const DenseLayer& dense, const std::byte* input, Use&& use);
  // x = LN(x + dense(z)) for all rows.
  void AddRows(const DenseLayer& dense, const Norm& norm);
  void Finish(const StackLayer& layer);
  // The rest of the layer after attention, for decoding's rows through second packs.
  void FinishFew(const DenseLayer& out, const Norm& norm, const StackLayer& layer);
  void Logits();
  void Run(const kernels::Plan& plan);

  const StackContext context_;
  const StackConfig& config_;
  const RowKernels& kernels_;
  const int64_t width_;
  const int64_t row_bytes_;  // Bytes of [H] in the compute type.
  EncoderTimes* const times_;
  StackPassLayout layout_;
  kernels::CacheStep step_;
  std::array<std::vector<int32_t>, 3> offsets_;  // By group: for absolute slots.
  kernels::CacheTable document_table_;
  ScratchLoan scratch_;
  StackBuffers buffers_;
  StackCall call_;
  int layer_ = 0;
};

}  // namespace longview::models
