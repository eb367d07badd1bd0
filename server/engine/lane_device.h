// The device as its own thread knows it. Used by that thread only, but for the watch.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "models/model.h"
#include "server/engine/refusals.h"
#include "server/engine/turn_watch.h"
#include "server/exception_guard.h"

namespace longview::server {

class LaneDevice {
 public:
  // `lane`: its number behind the queue (scheduler/lane.h).
  LaneDevice(std::string name, int lane) : name_(std::move(name)), lane_(lane) {}

  const std::string& name() const { return name_; }
  int lane() const { return lane_; }
  bool lost() const { return !why_.empty(); }
  const std::string& why() const { return why_; }

  // Watches the thread's current turn.
  TurnWatch& watch() const { return *watch_; }

  // A model's error as clients hear it. Notes whether it says that the device is lost.
  absl::Status CheckLost(const absl::Status& status) {
    Note(status);
    return SaysLost(status) ? DeviceLostError(name_) : RefusalOrInternal(status);
  }

  void Note(const absl::Status& status) {
    if (lost() || !SaysLost(status)) return;
    why_ = std::string(status.message());
    if (why_.empty()) why_ = "lost";
  }

 private:
  static bool SaysLost(const absl::Status& status) {
    return status.GetPayload(std::string(models::kDeviceLost)).has_value();
  }

  const std::string name_;
  const int lane_;
  std::string why_;
  std::unique_ptr<TurnWatch> watch_ = std::make_unique<TurnWatch>();
};

}  // namespace longview::server
