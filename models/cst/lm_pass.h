// One pass of several sequences' next tokens over all layers: prefill and decoding together.
//
// Definition: Lee et al. 2023, section 3.3, with the choices of config.h. Every token sees its
// slice up to itself, the e tokens before it, and Y_g of its slice: attention of the slice before
// it to all earlier ones; the first slice's is zero. A finished slice's embedding is summed token
// by token in fp32, whether it arrives whole or one token at a time, so that where prefill is cut,
// or a fork goes on, changes no bit.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "kernels/pool/slice_pool.h"
#include "models/cst/lm_buffers.h"
#include "models/cst/lm_layout.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/pass_step.h"
#include "models/layers/stopwatch.h"

namespace longview::models {

// What every pass of one model shares. Borrowed.
struct CstLmContext {
  CstContext rows;
  kernels::ProjectionCache* cache = nullptr;

  const CstConfig& config() const { return *rows.config; }
};

// Used by the executor's thread. The constructor and Advance throw what LibTorch and the allocator
// throw.
class CstLmPass final : public TokenPass {
 public:
  // Borrowed arguments outlive the pass; `times` is added to, unless null. One pass at a time.
  CstLmPass(const CstLmContext& context, ScratchKeeper& scratch, std::vector<TokenRun> runs,
            EncoderTimes* times);

  static CstPassLayout LayOut(const CstContext& context, std::vector<TokenRun> runs);
  // Exact bytes of scratch of a pass of this layout, panel results aside.
  static size_t ScratchBytes(const CstContext& context, const CstPassLayout& layout);

  absl::Status Begin() override;
  bool Advance() override;

 private:
  static CstSizes SizesOf(const CstContext& context, const CstPassLayout& layout);

  // Y_g of runs whose sequence was found in the cache: read before the step may give blocks away,
  // put into the state once there is one.
  std::vector<float> ReadSnapshots() const;
  void RestoreStates(const std::vector<float>& snapshots);

  void Embed();
  // Y_l of `from` to z.
  void AttendTokens(const CstLayer& layer, const std::byte* from);
  void AttendGroup(const CstGroup& group, const CstLayer& layer);
  void WriteWindow(const CstGroup& group);
  // Embeddings of the slices that end, their place among the pages, and their Y_g.
  void AttendSlices(const CstLayer& layer, const std::byte* from);
  void PoolPieces(const std::byte* from);
  void PoolLinearly(const DenseLayer& pool, const std::byte* from);
  void ProjectSlices(const CstLayer& layer);
  void WriteSlices(const CstGroup& group);
  void WriteSnapshots(const CstGroup& group);
  // z = `from` + the Y_g of each row's slice.
  void AddSlices(const std::byte* from);
  void StoreGlobals();

  void GatherWanted();

  kernels::PoolState StateOf(const CstPiece& piece) const;
  const float* GlobalOf(size_t piece) const;
  kernels::Source Blocks(const CstGroup& group, int strip);
  kernels::ProjectionCache::Rows HeadRows(const std::byte* k, const std::byte* v,
                                          int64_t stride) const;
  void Run(const kernels::Plan& plan);

  const CstLmContext context_;
  const CstConfig& config_;
  const CstWeights& weights_;
  const RowKernels& kernels_;
  const int64_t width_;
  const int64_t row_bytes_;  // Of [D] in the compute type.
  const std::vector<float> zeros_;
  EncoderTimes* const times_;
  CstPassLayout layout_;
  kernels::CacheStep step_;
  ScratchLoan scratch_;
  CstBuffers buffers_;
  CstCall call_;
  std::vector<int32_t> absolute_;  // Sequence offsets for absolute slots, of the call being made.
  std::vector<kernels::SlicePiece> pieces_;
  std::vector<float*> wanted_;  // Where the wanted rows' logits go.
  int layer_ = 0;
};

}  // namespace longview::models
