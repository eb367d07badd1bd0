// A batch of one model on a device, layer by layer: a family says what a part of the batch is
// (DevicePart) and which parts there are (DeviceItems); the run does what all families do alike.
//
// A batch too large for the model's workspace runs in parts, one after the other: rows do not
// depend on their batch mates, so their bits are the same. While one part computes, the host plans
// the next one, writes its lists and has them copied. The host waits once a part, for its results.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/cost/stopwatch.h"
#include "models/dense/scratch.h"
#include "models/device/device.h"
#include "models/device/device_workspace.h"
#include "models/device/staged_lists.h"

namespace longview::models {

// Seconds by part of the work, for calibration: the host then waits after every step.
class DeviceTimer {
 public:
  // `times` is added to, unless null.
  DeviceTimer(const Device& device, RunTimes* times) : device_(device), times_(times) {}

  // Runs `body`, which hands work to the device's stream.
  template <typename Body>
  void Run(double RunTimes::*sum, Body&& body) const {
    if (times_ == nullptr) return body();
    const Stopwatch watch(&(times_->*sum));
    body();
    device_.Wait();
  }

 private:
  const Device& device_;
  RunTimes* const times_;
};

// Results of a part: copies to pinned memory, one behind the other without gaps.
class DeviceResults {
 public:
  // Borrows all. `room`: of `pinned`, in bytes.
  DeviceResults(const Device& device, std::byte* pinned, size_t room)
      : device_(device), next_(pinned), left_(room) {}

  // Throws DeviceError, also where no room is left.
  void Add(const void* from_device, size_t bytes);

 private:
  const Device& device_;
  std::byte* next_;
  size_t left_;
};

// Items of a batch that go through the device together: plans, made by the host, and the work that
// follows from them. Members throw DeviceError and what LibTorch throws.
class DevicePart {
 public:
  virtual ~DevicePart() = default;

  // Exact needs of the part: counted by Stage and Carve over no memory.
  virtual DeviceRunBytes bytes() const = 0;
  // Writes what kernels read, bytes().lists in all, and keeps where the device finds it.
  virtual void Stage(StagedLists& lists) = 0;
  // Takes buffers, bytes().buffers in all. After Stage; what they hold is left from other parts.
  virtual void Carve(Carver& carver) = 0;

  // Work for the device's stream, within a Device::Turn. Nothing here waits or allocates.
  virtual int layers() const = 0;  // At least 1.
  // The work before the first layer: embeddings.
  virtual void Embed() = 0;
  virtual void RunLayer(int layer, const DeviceTimer& timer) = 0;
  // After the last layer.
  virtual void AddResults(DeviceResults& results) const = 0;
};

// The items of a batch as their family sees them: 0, 1, ... in the order of the batch.
class DeviceItems {
 public:
  virtual ~DeviceItems() = default;

  virtual int size() const = 0;
  // For messages: "a document of 70 tokens".
  virtual std::string NameOf(int item) const = 0;
  // Plans a part of these items, ascending. Called for parts that turn out too large, too.
  virtual std::unique_ptr<DevicePart> Plan(std::span<const int> items) const = 0;
  // Keeps what came back of the part of these items: `results` is gone after the call.
  virtual void Keep(std::span<const int> items, const std::byte* results) = 0;
};

// One thread uses it. Advance throws DeviceError, also for an item that is too large by itself, and
// what LibTorch and the allocator throw.
class DeviceRun {
 public:
  // REQUIRES: everything borrowed outlives the run. `times` is added to, unless null.
  DeviceRun(const Device& device, DeviceWorkspace& workspace, DeviceItems& items, RunTimes* times);
  // Waits for what was handed over.
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  // Hands the next layer of a part to the device; returns whether layers are left.
  bool Advance();

  // Nobody waits for the item any more. It enters no part from now on; one that it is in already
  // keeps it, for a device gains nothing from closing gaps in work it was handed, unless nobody
  // waits for any of that part's items.
  void Drop(int i) { dropped_[i] = true; }

 private:
  struct Planned {
    std::vector<int> items;
    std::unique_ptr<DevicePart> part;
  };

  std::optional<Planned> PlanNext();
  bool Wanted(const Planned& planned) const;
  void StageNext();
  bool BeginPart();
  void EndPart();
  void GiveBack();

  const Device& device_;
  DeviceWorkspace& workspace_;
  DeviceItems& items_;
  const DeviceTimer timer_;
  std::vector<bool> dropped_;
  std::vector<std::vector<int>> waiting_;  // Not planned; the last are next.
  std::optional<Planned> next_;            // Lists of the next part are sent already.
  std::optional<Planned> current_;
  int layer_ = 0;  // Next layer of current_ to run.
  bool holds_workspace_ = false;
};

}  // namespace longview::models
