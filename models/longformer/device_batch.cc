#include "models/longformer/device_batch.h"

#include <algorithm>

#include "kernels/cuda/pool/pool_pieces.h"
#include "kernels/cuda/span/launch_shape.h"

namespace longview::models {
namespace {

// Layers with the same windows share a plan, but for a last one that computes fewer rows.
std::vector<int> FirstOfPattern(const LongformerConfig& config, bool subset) {
  std::vector<int> first;
  for (int layer = 0; layer < config.layers; ++layer) {
    int same = 0;
    while (config.window[same] != config.window[layer] ||
           config.dilation[same] != config.dilation[layer]) {
      ++same;
    }
    first.push_back(subset && layer == config.layers - 1 ? layer : same);
  }
  return first;
}

}  // namespace

DeviceBatch::DeviceBatch(const LongformerConfig& config, Sequences sequences, bool subset)
    : config_(config), sequences_(sequences.begin(), sequences.end()), offsets_{0} {
  for (const EncoderSequence* sequence : sequences_) {
    offsets_.push_back(offsets_.back() + sequence->tokens());
  }
  const std::vector<int> first = FirstOfPattern(config, subset);
  for (int layer = 0; layer < config.layers; ++layer) {
    if (first[layer] != layer) {
      pattern_.push_back(pattern_[first[layer]]);
      continue;
    }
    pattern_.push_back(static_cast<int>(plans_.size()));
    plans_.emplace_back().host =
        PlanLayer(config, layer, sequences_, offsets_, subset && layer == config.layers - 1,
                  kernels::cuda::kDeviceTileRows);
  }
  StagedLists counted(nullptr, nullptr);
  Stage(counted);
  list_bytes_ = counted.used();
}

const DeviceLayerPlan& DeviceBatch::PlanOf(int layer) const { return plans_[pattern_[layer]]; }

void DeviceBatch::Stage(StagedLists& lists) {
  StageTokens(lists);
  for (DeviceLayerPlan& plan : plans_) StageLayer(plan, lists);
}

void DeviceBatch::StageTokens(StagedLists& lists) {
  std::vector<int32_t> ids, positions, types;
  std::vector<uint8_t> roles;
  for (const EncoderSequence* sequence : sequences_) {
    ids.insert(ids.end(), sequence->ids.begin(), sequence->ids.end());
    positions.insert(positions.end(), sequence->positions.begin(), sequence->positions.end());
    types.insert(types.end(), sequence->types.begin(), sequence->types.end());
    types.resize(ids.size());
    roles.insert(roles.end(), sequence->roles.begin(), sequence->roles.end());
  }
  tokens_ = {lists.Add(ids), lists.Add(positions), lists.Add(types), lists.Add(roles)};
}

void DeviceBatch::StageLayer(DeviceLayerPlan& plan, StagedLists& lists) const {
  plan.band = StagePlan(plan.host.band, lists);
  plan.full = StagePlan(plan.host.full, lists);
  plan.local_rows = lists.Add(plan.host.local_rows);
  plan.query_rows = lists.Add(plan.host.query_rows);
  plan.out_rows = lists.Add(plan.host.out_rows);
  std::vector<int32_t> rows, outs;
  for (const GlobalRow& global : plan.host.unfolded) {
    rows.push_back(global.row);
    outs.push_back(global.out);
  }
  plan.unfolded_rows = lists.Add(rows);
  plan.unfolded_outs = lists.Add(outs);
  StageFolds(plan, lists);
}

void DeviceBatch::StageFolds(DeviceLayerPlan& plan, StagedLists& lists) const {
  const std::vector<GlobalGroup>& groups = plan.host.folded_groups;
  plan.folds.clear();
  for (size_t begin = 0, end = 0; begin < groups.size(); begin = end) {
    FoldBatch batch;
    std::vector<int32_t> rows, outs, begins, ends;
    std::vector<kernels::cuda::PoolSegment> segments;
    for (; end < groups.size() && groups[end].count == groups[begin].count; ++end) {
      const GlobalGroup& group = groups[end];
      for (int32_t i = group.first; i < group.first + group.count; ++i) {
        rows.push_back(plan.host.folded[i].row);
        outs.push_back(plan.host.folded[i].out);
      }
      segments.push_back({group.row0, group.row0 + group.tokens});
      begins.push_back(segments.back().begin);
      ends.push_back(segments.back().end);
      batch.longest = std::max(batch.longest, group.tokens);
    }
    const kernels::cuda::PoolPiecePlan pieces = kernels::cuda::CutPieces(segments);
    batch.shape = {static_cast<int32_t>(end - begin), groups[begin].count, config_.heads,
                   config_.head_dim(), config_.width};
    batch.pieces = static_cast<int32_t>(pieces.pieces.size());
    batch.rows = lists.Add(rows);
    batch.out_rows = lists.Add(outs);
    batch.begins = lists.Add(begins);
    batch.ends = lists.Add(ends);
    batch.piece_list = lists.Add(pieces.pieces);
    batch.piece0 = lists.Add(pieces.piece0);
    plan.folds.push_back(batch);
  }
}

}  // namespace longview::models
