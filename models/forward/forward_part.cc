#include "models/forward/forward_part.h"

#include <utility>

namespace longview::models {

DeviceRunBytes PartBytes(const ForwardNeed& need, const Forward& forward) {
  return {need.lists, need.memory(), ResultBytes(forward)};
}

ForwardPart::ForwardPart(std::unique_ptr<Forward> forward, const Device& device, Compute compute)
    : forward_(std::move(forward)),
      backend_(device, compute),
      need_(CountOnDevice(*forward_, compute).need),
      bytes_(PartBytes(need_, *forward_)),
      most_bytes_{need_.most_lists, bytes_.buffers, bytes_.results} {}

void ForwardPart::Stage(StagedLists& lists) {
  backend_.StageInto(lists);
  forward_->Stage(backend_);
}

void ForwardPart::Carve(Carver& carver) {
  backend_.UseMemory(carver, need_);
  forward_->Take(backend_);
}

void ForwardPart::RunLayer(int layer, const DeviceTimer& timer) {
  backend_.set_timer(&timer);
  forward_->Layer(backend_, layer);
  backend_.set_timer(nullptr);
}

void ForwardPart::AddResults(DeviceResults& results) const {
  for (const Rows& rows : forward_->Results()) {
    if (rows) results.Add(rows.data, static_cast<size_t>(rows.count * rows.width) * sizeof(float));
  }
}

}  // namespace longview::models
