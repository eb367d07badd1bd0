// Transformer-LS's forward over the next tokens of several sequences: prefill and decoding
// together, in either schedule.
//
// Definition: Zhu et al. 2021 as released (`autoregressive/`). The residual stream is fp32 in every
// compute type and, with pre_ln, holds what norm1 or norm2 made of it: there is no path around the
// norms and none after the last layer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "models/generation/passes/token_forward.h"
#include "models/ops/cache_rows.h"
#include "models/ops/long_short.h"
#include "models/transformer_ls/append_segments.h"
#include "models/transformer_ls/context.h"
#include "models/transformer_ls/pass_layout.h"

namespace longview::models {

class LsPass final : public TokenForward {
 public:
  // Borrows what the context points to. `logit_rows`: rows of logits at a time, at most.
  LsPass(const LsContext& context, std::vector<TokenRun> runs, int64_t logit_rows);

  std::span<const TokenRun> runs() const override { return layout_.runs; }
  int layers() const override { return config_.layers; }
  bool RepeatsEarlier(int layer) const override { return layer > 0; }

  absl::Status Append() override;
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override;
  void Layer(Backend& backend, int layer) override;
  Rows Logits(Backend& backend, int64_t first, int64_t count) override;
  void End() override { step_->End(); }

 private:
  static constexpr size_t kStrips = 3;

  // Blocks and places that the cache gives a group of runs, and where they are staged.
  struct Group {
    std::array<std::vector<int32_t>, kStrips> blocks, offsets;  // By strip; absolute slots.
    std::array<BlocksRef, kStrips> tables;
    PlacesRef window;  // [rows]
    PlanRef plan;
  };

  const LsLmLayer& WeightsOf(int layer) const {
    return context_.weights->layers[static_cast<size_t>(layer)];
  }
  StripRef StripOf(int strip, int layer) const {
    return {context_.cache, strip, layer, config_.heads};
  }
  void ListTable(const LsGroup& layout, int strip, Group& group) const;
  void StageGroup(Backend& backend, size_t index);
  PlacesRef StageLandmarks(Backend& backend, int strip);
  // Rows from `first` on, of both ways through a linear: use(row, count, few), many rows first.
  template <typename Use>
  void ForParts(int64_t first, Use&& use) const;

  void Project(Backend& backend, const LsLmLayer& weights) const;
  void CloseSegments(Backend& backend, int layer) const;
  void StoreWindow(Backend& backend, int layer, size_t index) const;
  kernels::Source SourceOf(Backend& backend, kernels::ScheduleSource kind, int layer,
                           const Group& group) const;
  // The tables of positions, or, of rows that decode, of their scores, which are made.
  std::array<kernels::Table, 2> TablesOf(Backend& backend, int layer, const LsGroup& layout) const;
  void Attend(Backend& backend, int layer, size_t index) const;
  void Finish(Backend& backend, int layer, int64_t first) const;

  const LsContext context_;
  const LsLmConfig& config_;
  const int64_t logit_rows_;
  const LsPassLayout layout_;
  std::optional<kernels::CacheStep> step_;  // Set by Append.

  // Staged lists.
  std::array<Group, 3> groups_;
  std::vector<int32_t> ids_, wanted_, zeros_;
  std::array<std::vector<kernels::CachePlace>, kStrips> places_;  // Landmarks, by strip.
  std::vector<float*> logits_to_;                                 // [wanted]
  IndexRef ids_ref_, wanted_ref_, zeros_ref_, window_limits_, segment_limits_;
  PiecesRef pieces_;
  PlacesRef late_, early_;

  // "T" is the compute type.
  Rows x_;      // [rows, d] residual stream.
  Rows input_;  // T [rows, d], x rounded; x itself for fp32.
  LongShortRows parts_;
  Rows hidden_means_;                    // T [closed segments * r, d]; kBlocks.
  Rows window_scores_, segment_scores_;  // [h, decoding rows * entries]
  Rows z_;                               // T [rows, d] attention's output.
  Rows logit_input_;                     // T [logit rows, d]
  Rows logits_;                          // [logit rows, V], where a device computes.
};

}  // namespace longview::models
