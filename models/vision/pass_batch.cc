#include "models/vision/pass_batch.h"

#include <utility>

namespace longview::models {

DeviceRunBytes PartBytes(const PassNeed& need, const VisionPass& pass) {
  const auto results = static_cast<size_t>(pass.result_floats()) * sizeof(float);
  return {need.ops.lists, need.memory() + kernels::AlignUp(results), results};
}

PassNeed CountOnHost(VisionPass& pass, const ComputeContext& context) {
  HostCount ops(context);
  HostMapOps maps(context);
  CountPass(pass, ops, maps);
  EncoderWork work = ops.work();
  work += maps.work();
  return {ops.need(), maps.scratch(), work};
}

PassNeed CountOnDevice(VisionPass& pass, Compute compute) {
  DeviceCount ops(compute);
  DeviceMapOps maps(compute);
  StagedLists lists(nullptr, nullptr);
  maps.StageInto(lists);
  CountPass(pass, ops, maps);
  EncoderWork work = ops.work();
  work += maps.work();
  OpsNeed need = ops.need();
  need.lists += lists.used();
  return {need, maps.scratch(), work};
}

std::vector<VisionPicture> PicturesOf(std::span<const VisionInput> inputs) {
  std::vector<VisionPicture> pictures;
  for (const VisionInput& input : inputs) {
    pictures.push_back({input.pixels->size, input.pixels, input.stages});
  }
  return pictures;
}

VisionPassPart::VisionPassPart(std::unique_ptr<VisionPass> pass, const Device& device,
                               Compute compute)
    : pass_(std::move(pass)),
      ops_(device, compute),
      maps_(device, compute),
      need_(CountOnDevice(*pass_, compute)),
      bytes_(PartBytes(need_, *pass_)) {}

void VisionPassPart::Stage(StagedLists& lists) {
  ops_.StageInto(lists);
  maps_.StageInto(lists);
  pass_->Stage(ops_, maps_);
}

// Operations on maps use the scratch of the others.
void VisionPassPart::Carve(Carver& carver) {
  results_ = carver.Take<float>(pass_->result_floats());
  Carver behind = carver;
  behind.TakeBytes(need_.ops.buffers);
  maps_.UseScratch(behind.TakeBytes(need_.scratch()));
  OpsNeed shared = need_.ops;
  shared.scratch = need_.scratch();
  ops_.UseMemory(carver, shared);
  pass_->Take(ops_, maps_);
  pass_->set_results(results_);
}

void VisionPassPart::RunLayer(int layer, const DeviceTimer& timer) {
  ops_.set_timer(&timer);
  maps_.set_timer(&timer);
  pass_->Layer(ops_, maps_, layer);
  ops_.set_timer(nullptr);
  maps_.set_timer(nullptr);
}

void VisionPassPart::AddResults(DeviceResults& results) const {
  results.Add(results_, bytes_.results);
}

}  // namespace longview::models
