// The plans and buffers of a batch in stages. What a family brings, as static members of Parts:
//
//   Context                                   a VisionContext
//   Plan                                      of a stage: has `images` and `rows`
//   Buffers                                   of a stage: has `x` and `panel`
//   Maps(config, image)                       an image's map sizes, by stage
//   PlanStage(context, stage, maps, measure)  `measure`: only sizes are wanted; thread-safe
//   PanelWidth(config, stage)                 elements of the widest row that is gathered
//   Carve(context, stage, plan, carver)       the buffers but for x and panel
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/base/workspace.h"
#include "models/vision/staged_batch.h"

namespace longview::models {

template <class Parts>
class PlannedBatch : public StagedBatch {
 public:
  using Context = typename Parts::Context;
  using StagePlan = typename Parts::Plan;
  using Buffers = typename Parts::Buffers;

  // REQUIRES: the context outlives the batch, too.
  PlannedBatch(const Context& context, std::span<const VisionInput> inputs, ScratchKeeper& scratch,
               EncoderTimes* times)
      : StagedBatch(context, inputs, scratch, times), context_(context) {}

  // Of a batch of images of these sizes. Thread-safe.
  static size_t ScratchBytes(const Context& context, std::span<const ImageSize> sizes) {
    Carver carver(nullptr);
    CarveStages(context, PlanStages(context, sizes, true), carver);
    return carver.used();
  }

 protected:
  const StagePlan& plan() const { return plans_[stage()]; }
  const Buffers& buffers() const { return buffers_[stage()]; }
  const auto& config() const { return *context_.config; }
  const auto& weights() const { return *context_.weights; }
  const Context& context() const { return context_; }
  // An image's first row after the last block, and its tokens.
  const float* LastRows(int member) const {
    const StagePlan& last = plans_.back();
    return buffers_.back().x + int64_t{last.images[member].row0} * config().stages.back().width;
  }
  const MapTokens& LastTokens(int member) const { return plans_.back().images[member]; }

 private:
  static std::vector<StagePlan> PlanStages(const Context& context, std::span<const ImageSize> sizes,
                                           bool measure);
  static std::vector<Buffers> CarveStages(const Context& context, std::span<const StagePlan> plans,
                                          Carver& carver);

  size_t Stages() const final { return config().stages.size(); }
  int Blocks(size_t stage) const final { return config().stages[stage].blocks; }
  void Plan(std::span<const ImageSize> sizes) final { plans_ = PlanStages(context_, sizes, false); }
  void Carve(Carver& carver) final { buffers_ = CarveStages(context_, plans_, carver); }
  Stream StreamOf(size_t stage) const final {
    return {buffers_[stage].x, config().stages[stage].width, plans_[stage].images};
  }
  const DenseLayer& Head() const final { return *weights().head; }

  const Context& context_;
  std::vector<StagePlan> plans_;
  std::vector<Buffers> buffers_;  // Their memory overlaps, but for x of neighbours.
};

template <class Parts>
auto PlannedBatch<Parts>::PlanStages(const Context& context, std::span<const ImageSize> sizes,
                                     bool measure) -> std::vector<StagePlan> {
  std::vector<std::vector<ImageSize>> maps(context.config->stages.size());
  for (const ImageSize size : sizes) {
    const auto of_image = *Parts::Maps(*context.config, size);
    for (size_t s = 0; s < maps.size(); ++s) maps[s].push_back(of_image[s]);
  }
  std::vector<StagePlan> plans;
  for (size_t s = 0; s < maps.size(); ++s) {
    plans.push_back(Parts::PlanStage(context, s, maps[s], measure));
  }
  return plans;
}

// Residual streams of even stages lie at the front of one block, of odd ones at its end; what a
// stage works with lies between its stream and the other end.
template <class Parts>
auto PlannedBatch<Parts>::CarveStages(const Context& context, std::span<const StagePlan> plans,
                                      Carver& carver) -> std::vector<Buffers> {
  const auto& config = *context.config;
  int64_t panel = 0;
  size_t total = 0;
  std::vector<size_t> streams;
  for (size_t s = 0; s < plans.size(); ++s) {
    panel = std::max(panel, Parts::PanelWidth(config, s));
    streams.push_back(kernels::AlignUp(static_cast<size_t>(plans[s].rows) * config.stages[s].width *
                                       sizeof(float)));
    Carver measure(nullptr);
    Parts::Carve(context, s, plans[s], measure);
    total = std::max(total, streams[s] + measure.used());
    if (s > 0) total = std::max(total, streams[s - 1] + streams[s]);
  }
  std::byte* const gathered =
      carver.TakeBytes(static_cast<size_t>(kPanelRows * panel * ElementBytes(context.compute)));
  std::byte* const base = carver.TakeBytes(total);
  std::vector<Buffers> stages;
  for (size_t s = 0; base != nullptr && s < plans.size(); ++s) {
    const bool even = s % 2 == 0;
    Carver rest(even ? base + streams[s] : base);
    Buffers& stage = stages.emplace_back(Parts::Carve(context, s, plans[s], rest));
    stage.x = reinterpret_cast<float*>(even ? base : base + total - streams[s]);
    stage.panel = gathered;
  }
  return stages;
}

}  // namespace longview::models
