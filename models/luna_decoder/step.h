// A step of Luna sequences in flight: one pass of their next tokens over all layers, prefill and
// decoding side by side. Sums over earlier tokens are in the sequences' states, so that a prompt
// may be cut anywhere without changing a bit.
//
//   a = causal attention(x);   x = LN(x + a W_out);   x = LN(x + FFN(x))
//
// (pre-norm: attention and FFN read LN(x), and add without a norm). A translation model first reads
// its sequences' documents (document.h), and attends to their keys between the two:
// x = LN(x + softmax(x W_q K^T) V W_out). The residual stream, the
// running sums and softmax are fp32 in both compute types; with bf16 the inputs of linears are
// rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/span/plan.h"
#include "models/dense/scratch.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/decoder.h"
#include "models/layers/stopwatch.h"
#include "models/luna_decoder/context.h"
#include "models/luna_decoder/document.h"

namespace longview::models {

// "T" is an element of the compute type. Inputs of linears hold a panel more than their rows,
// so that a last panel may read past them.
struct LunaStepBuffers {
  float* x = nullptr;              // [rows + panel, d] residual stream.
  std::byte* input = nullptr;      // T [rows + panel, d]; fp32 post-norm: x.
  float* projections = nullptr;    // [rows, parts d]
  float* context = nullptr;        // [rows + panel, d] of attention; fp32: z.
  std::byte* z = nullptr;          // T [rows + panel, d]
  std::byte* queries = nullptr;    // T [rows, d] across; null without an encoder.
  std::byte* keys = nullptr;       // T [document rows, 2d] of one layer; tied [document rows, d].
  std::byte* workspace = nullptr;  // Of RunningOuter and of the executor, in turn.
};

// Attention of a step's tokens to their documents.
struct LunaCrossPlan {
  kernels::Plan plan;
  std::vector<const LunaDocument*> documents;  // Distinct, in the order of their keys.
  int64_t rows = 0;                            // Of P, of all of them.
};

// Used by the executor's thread.
class LunaStep final : public DecoderStep {
 public:
  // Borrowed arguments outlive the step, the feeds' tokens included; `times` may be null, its
  // attention is RunningOuter. Prompts come in parts (parted_step.h).
  LunaStep(const LunaDecoderContext& context, ScratchKeeper& scratch,
           std::span<const DecoderFeed> feeds, EncoderTimes* times);

  bool Advance() override;
  // Its logits are not computed.
  void Drop(int feed) override { feeds_[feed].dropped = true; }
  absl::Status status() const override { return status_; }
  std::span<const float> Logits(int feed) const override;

  // Exact bytes of scratch of a step of so many tokens, of one sequence without documents; panel
  // results aside.
  static size_t ScratchBytes(const LunaDecoderContext& context, int64_t rows);
  // A bound on what each sequence adds to that.
  static size_t DocumentScratchBytes(const LunaDecoderContext& context);

 private:
  struct Feed {
    DecoderFeed feed;
    LunaSequence* sequence = nullptr;
    int64_t row0 = 0;
    bool dropped = false;
    std::vector<float> logits;
    int64_t wanted() const;
  };

  bool RunPart();
  bool RunLayer();
  bool OwnStates();
  void Embed();
  void EmbedRow(int32_t id, int64_t position, float* x, std::byte* input) const;
  void Project(const LunaDecoderLayer& layer);
  void Attend(const LunaDecoderLayer& layer);
  void AddAttention(const LunaDecoderLayer& layer);
  void AttendAcross(const LunaDecoderLayer& layer);
  int64_t KeepWanted();
  void Finish(const LunaDecoderLayer& layer, int64_t rows);
  void ComputeLogits();

  bool last() const { return layer_ + 1 == config_.layers; }
  bool pre_norm() const { return config_.norms == NormPlace::kPre; }

  const LunaDecoderContext& context_;
  const LunaDecoderConfig& config_;
  const RowKernels& kernels_;
  const int64_t width_;
  const int64_t row_bytes_;  // Of [d] in the compute type.
  const std::vector<float> zeros_;
  EncoderTimes* const times_;
  std::vector<Feed> feeds_;
  int64_t rows_ = 0;
  LunaCrossPlan cross_;
  ScratchLoan scratch_;
  LunaStepBuffers buffers_;
  size_t reading_ = 0;  // The feed whose document is read; past the last: tokens are.
  int layer_ = 0;
  absl::Status status_;
};

}  // namespace longview::models
