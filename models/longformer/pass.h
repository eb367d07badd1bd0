// Longformer's encoder over a ragged batch: [tokens, H] and offsets, no padding anywhere. Its
// layer: layer.h. Beside the residual stream its memory is that of a piece (layer_plan.h).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "models/device/device_run.h"
#include "models/encoder/pass.h"
#include "models/encoder/ragged_batch.h"
#include "models/longformer/config.h"
#include "models/longformer/layer.h"

namespace longview::models {

// Borrows all. Every sequence has a token and a wanted row.
class LongformerPass final : public EncoderPass {
 public:
  LongformerPass(const LongformerConfig& config, const LongformerWeights& weights, Compute compute,
                 Sequences sequences, int tile_rows, int64_t piece_rows = LayerPlanner::kPieceRows);

  int layers() const override { return config_.layers; }
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override;
  void Layer(Backend& backend, int layer) override;

  Rows Wanted() const override { return subset_ ? kept_.First(wanted()) : rows_.x.First(wanted()); }
  int64_t FirstWanted(int place) const override { return wanted_offsets_[place]; }

  RaggedBatch& batch() override { return batch_; }
  void LeaveDropped(int layer) override;

 private:
  void MakePlans();
  // Layers of the same windows share a plan, but for a last one that computes fewer rows.
  int KeyOf(int layer) const;
  const StagedLayer& PlanOf(int layer) const { return plans_.at(KeyOf(layer)); }
  LayerPlanner Planner() const;
  void WholeLayer(Backend& backend, const LongformerLayerRun& run, const StagedLayer& plan);
  void ProjectPiece(Backend& backend, const LongformerLayerRun& run, const LayerPiece& piece,
                    const StagedPiece& staged);
  void LastLayer(Backend& backend, const LongformerLayerRun& run, const StagedLayer& plan);

  int64_t width() const { return config_.width; }
  int64_t tokens() const { return batch_.rows(); }
  int64_t wanted() const { return wanted_offsets_.back(); }

  const LongformerConfig& config_;
  const LongformerWeights& weights_;
  const Compute compute_;
  const int tile_rows_;
  const int64_t piece_rows_;
  // Some sequence wants less than all its rows. Kept when sequences leave, so that plans only
  // ever shrink and buffers stay large enough.
  const bool subset_;
  RaggedBatch batch_;
  std::map<int, StagedLayer> plans_;
  std::vector<int64_t> wanted_offsets_;

  std::vector<int32_t> ids_, places_, kinds_;  // Staged lists.
  IndexRef ids_ref_, places_ref_, kinds_ref_;

  LongformerRows rows_;
  Rows cut_globals_;  // T [globals of a document that is cut, H]
  Rows queries_;      // T [wanted, H] of a last layer for fewer rows.
  Rows kept_;         // [wanted, H] x of it.
  Rows kept_input_;   // T [wanted, H] of it.
};

// The most that one document of `max_tokens` tokens needs, whatever is global in it, by what
// `bytes` says of a batch: a device must have room for a Longformer's longest one.
DeviceRunBytes LongestLongformerBytes(
    const LongformerConfig& config, int max_tokens,
    absl::FunctionRef<DeviceRunBytes(RaggedBatch::Sequences)> bytes);

}  // namespace longview::models
