// One pass of several sequences' next tokens over all layers: prefill and decoding together.
//
// Definition: Zhu et al. 2021 as released (`autoregressive/`). The residual stream is fp32 in both
// compute types and, with pre_ln, holds what norm1 or norm2 made of it: there is no path
// around the norms and none after the last layer.
#pragma once

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/pass_step.h"
#include "models/layers/stopwatch.h"
#include "models/transformer_ls/context.h"
#include "models/transformer_ls/pages.h"
#include "models/transformer_ls/pass_buffers.h"
#include "models/transformer_ls/pass_layout.h"

namespace longview::models {

// Used by the executor's thread. The constructor and Advance throw what LibTorch and the
// allocator throw.
class LsPass final : public TokenPass {
 public:
  // Borrowed arguments outlive the pass; `times` is added to, unless null. One pass at a time.
  LsPass(const LsContext& context, ScratchKeeper& scratch, std::vector<TokenRun> runs,
         EncoderTimes* times);

  static LsPassLayout LayOut(const LsContext& context, std::vector<TokenRun> runs);
  // Exact bytes of scratch of a pass of this layout, panel results aside.
  static size_t ScratchBytes(const LsContext& context, const LsPassLayout& layout);

  absl::Status Begin() override;
  bool Advance() override;

 private:
  void ClearTail(std::byte* buffer, PanelSizes sizes, int64_t rows) const;
  void FollowTables();
  void Embed();
  void Enter();
  // Rows that go through a linear together: a panel, or a row product of decoding (panel 0).
  struct Rows {
    int64_t count = 0;
    int panel = 0;
  };
  Rows NextRows(int64_t row) const;
  // The result is in `products` where the rows are decoding's.
  PanelOutput Multiply(const DenseLayer& dense, const void* x, const Rows& rows,
                       std::byte* products) const;
  void Project(const LsLmLayer& layer);
  void ProjectRow(const LsLmLayer& layer, const std::byte* y, int64_t row);
  void Attend(int group);
  void WriteWindow(int group);
  void Finish(const LsLmLayer& layer, int64_t first);
  void Logits();

  const LsContext context_;
  const LsLmConfig& config_;
  const RowKernels& kernels_;
  const int64_t width_;
  const int64_t row_bytes_;  // Of [d] in the compute type.
  EncoderTimes* const times_;
  LsPassLayout layout_;
  kernels::CacheStep step_;
  // [group][strip]: sequence offsets for absolute slots.
  std::array<std::vector<std::vector<int32_t>>, 3> absolute_;
  std::vector<int32_t> zero_offsets_;
  ScratchLoan scratch_;
  LsBuffers buffers_;
  LsCall call_;
  PageLists page_lists_;
  int layer_ = 0;
};

}  // namespace longview::models
