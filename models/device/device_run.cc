#include "models/device/device_run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::models {

void DeviceResults::Add(const void* from_device, size_t bytes) {
  if (bytes > left_) throw DeviceError("a part's results are larger than it said");
  device_.Check(device_.api().copy_out(device_.stream(), next_, from_device, bytes), "results");
  next_ += bytes;
  left_ -= bytes;
}

DeviceRun::DeviceRun(const Device& device, DeviceWorkspace& workspace, DeviceItems& items,
                     RunTimes* times)
    : device_(device),
      workspace_(workspace),
      items_(items),
      timer_(device, times),
      dropped_(static_cast<size_t>(items.size())) {
  waiting_.emplace_back(dropped_.size());
  std::iota(waiting_[0].begin(), waiting_[0].end(), 0);
}

DeviceRun::~DeviceRun() {
  if (!holds_workspace_) return;
  // Work that was handed over may still read the workspace; copies of lists end with what waits for
  // them, or before the next batch writes there.
  (void)device_.api().synchronize(device_.stream());
  workspace_.GiveBack();
}

// Halves what does not fit until it does.
std::optional<DeviceRun::Planned> DeviceRun::PlanNext() {
  while (!waiting_.empty()) {
    std::vector<int> items = std::move(waiting_.back());
    waiting_.pop_back();
    std::erase_if(items, [&](int item) { return dropped_[item]; });
    if (items.empty()) continue;
    std::unique_ptr<DevicePart> part = items_.Plan(items);
    const DeviceRunBytes need = part->bytes(), room = workspace_.room();
    if (need.Fits(room)) return Planned{std::move(items), std::move(part)};
    if (items.size() == 1) {
      throw DeviceError(absl::StrCat(items_.NameOf(items[0]), " needs ", need.device(),
                                     " bytes of ", device_.name(), " and ", need.results,
                                     " for results, the model's workspace has ", room.device(),
                                     " and ", room.results));
    }
    const auto middle = items.begin() + static_cast<ptrdiff_t>(items.size() / 2);
    waiting_.emplace_back(middle, items.end());
    waiting_.emplace_back(items.begin(), middle);
  }
  return std::nullopt;
}

bool DeviceRun::Wanted(const Planned& planned) const {
  return !std::ranges::all_of(planned.items, [&](int item) { return dropped_[item]; });
}

void DeviceRun::StageNext() {
  next_ = PlanNext();
  if (!next_) return;
  if (!holds_workspace_ && !workspace_.Take()) {
    throw DeviceError("the model's workspace is in use by another batch");
  }
  holds_workspace_ = true;
  StagedLists lists = workspace_.lists().Begin();
  next_->part->Stage(lists);
  workspace_.lists().Send(lists);
}

// Returns whether there is one that somebody waits for.
bool DeviceRun::BeginPart() {
  while (next_ && !Wanted(*next_)) StageNext();
  if (!next_) return false;
  current_ = std::exchange(next_, std::nullopt);
  layer_ = 0;
  workspace_.lists().Enter();
  Carver carver(workspace_.buffers());
  current_->part->Carve(carver);
  current_->part->Embed();
  return true;
}

// The one point where the host waits for kernels.
void DeviceRun::EndPart() {
  workspace_.lists().Leave();
  DeviceResults results(device_, workspace_.pinned_results(), workspace_.room().results);
  current_->part->AddResults(results);
  device_.Wait();
  items_.Keep(current_->items, workspace_.pinned_results());
  current_.reset();
}

void DeviceRun::GiveBack() {
  if (holds_workspace_) workspace_.GiveBack();
  holds_workspace_ = false;
}

bool DeviceRun::Advance() {
  const Device::Turn turn(device_);
  if (!current_) {
    bool begun = false;
    timer_.Run(&RunTimes::rest, [&] {
      if (!next_) StageNext();
      begun = BeginPart();
    });
    if (!begun) {
      GiveBack();
      return false;
    }
  }
  current_->part->RunLayer(layer_, timer_);
  // The device has work now.
  if (layer_ == 0) timer_.Run(&RunTimes::rest, [&] { StageNext(); });
  if (++layer_ < current_->part->layers()) return true;
  EndPart();
  if (next_) return true;
  GiveBack();
  return false;
}

}  // namespace longview::models
