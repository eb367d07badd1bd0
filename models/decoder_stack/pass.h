// A stack's forward over the next tokens of several sequences: prefill and decoding together. The
// residual stream is fp32 in every compute type.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "models/decoder_stack/pass_layout.h"
#include "models/generation/passes/strip_blocks.h"
#include "models/generation/passes/token_forward.h"
#include "models/ops/cache_rows.h"

namespace longview::models {

class StackPass final : public TokenForward {
 public:
  // Borrows what the context points to. `logit_rows`: rows of logits at a time, at most.
  StackPass(const StackContext& context, std::vector<TokenRun> runs, int64_t logit_rows);

  std::span<const TokenRun> runs() const override { return layout_.runs; }
  int layers() const override { return config_.layers(); }
  bool RepeatsEarlier(int layer) const override { return PatternOf(layer) != layer; }

  absl::Status Append() override;
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override;
  void Layer(Backend& backend, int layer) override;
  Rows Logits(Backend& backend, int64_t first, int64_t count) override;
  void End() override { step_->End(); }

 private:
  struct Group {
    StripBlocks strip;
    std::vector<PlanRef> plans;  // By layer, where it is the first of its window.
  };

  int PatternOf(int layer) const { return context_.weights->distances.PatternOf(layer); }
  void ListDocuments();
  // Rows of both ways through a linear: use(part), those of many rows first.
  template <typename Use>
  void ForParts(Use&& use) const;

  void Attend(Backend& backend, int layer, int group) const;
  void AttendDocuments(Backend& backend, int layer, const StackLayer::Cross& cross) const;
  void Store(Backend& backend, int layer, int group) const;
  void Finish(Backend& backend, int layer) const;

  const StackContext context_;
  const StackConfig& config_;
  const int64_t logit_rows_;
  const StackPassLayout layout_;
  std::optional<kernels::CacheStep> step_;  // Set by Append.

  std::array<Group, 3> groups_;
  std::vector<int32_t> ids_, places_, kinds_, wanted_;  // Staged lists.
  std::vector<int32_t> document_blocks_, document_offsets_;
  std::vector<float*> logits_to_;  // [wanted]
  IndexRef ids_ref_, places_ref_, kinds_ref_, wanted_ref_;
  PlanRef cross_ref_;
  BlocksRef documents_ref_;

  // "T" is the compute type.
  Rows x_;            // [rows, H] residual stream.
  Rows input_;        // T [rows, H], x rounded; x itself for fp32.
  Rows qkv_;          // T [rows, 3H]
  Rows queries_;      // T [rows, H] to documents, in the place of qkv.
  Rows z_;            // T [rows, H] attention's output.
  Rows logit_input_;  // T [logit rows, H]
  Rows logits_;       // [logit rows, V], where a device computes.
};

}  // namespace longview::models
