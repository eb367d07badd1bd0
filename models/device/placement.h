// Device and element type of a model: one decision for all families.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/dense/compute.h"
#include "models/dense/weight_format.h"
#include "models/device/device.h"
#include "models/device/device_workspace.h"
#include "models/directory/model_directory.h"
#include "models/model.h"

namespace longview::models {

// A property of a model that devices cannot run, with their limit: "width 37 must be even to run";
// the name of a device completes it. Unset: there is none.
using DeviceObstacle = std::optional<std::string>;

// Rows of 16-bit numbers are copied word by word. `what`: how the configuration says it, "width ".
DeviceObstacle OddWidth(std::string_view what, int64_t width);
// `limit`: "random features".
DeviceObstacle AboveLimit(std::string_view what, int64_t value, int64_t most,
                          std::string_view limit);

struct Placement {
  std::unique_ptr<Device> device;  // Null: the CPU.
  std::string name = "cpu";        // The device's.
  Compute compute = Compute::kFp32;
  std::unique_ptr<Int8Linears> int8;  // For the load; null: no linear is int8.
  std::vector<std::string> notes;     // Wishes that were not met, for ModelInfo.

  WeightFormat format() const { return {compute, int8.get()}; }
  // ModelInfo::dtype.
  const char* dtype() const { return int8 != nullptr ? "int8" : ComputeName(compute); }
};

// A model of this directory on `device`, null: on the CPU, in the type that options and directory
// choose for it. Behind an obstacle that is the CPU, with a note. `notes` come first.
// INVALID_ARGUMENT for a dtype that is not served there.
absl::StatusOr<Placement> PlaceModel(std::unique_ptr<Device> device, const DeviceObstacle& obstacle,
                                     const ModelDirectory& directory, const LoadOptions& options,
                                     std::vector<std::string> notes);

// Adds which linears are int8 to `notes`, after the load. INVALID_ARGUMENT for a name in
// longview.json that is no linear of the model.
absl::Status NoteInt8(const ModelDirectory& directory, const Placement& place,
                      std::vector<std::string>& notes);

// Runs `load`, in the Turn of `device` unless null; what it throws is a status as GuardDevice's.
absl::Status LoadInTurn(const std::string& what, const Device* device,
                        absl::FunctionRef<absl::Status()> load);

// The share of its device that a model was given at load.
struct DevicePlacement {
  std::unique_ptr<const Device> device;
  Compute compute = Compute::kFp32;
  size_t weight_bytes = 0;  // In the device's memory.
  DeviceRunBytes room;      // For the workspace.
};

}  // namespace longview::models
