#include "models/device/placement.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/dense/compute_choice.h"
#include "models/status_macros.h"

namespace longview::models {

DeviceObstacle OddWidth(std::string_view what, int64_t width) {
  if (width % 2 == 0) return std::nullopt;
  return absl::StrCat(std::string(what), width, " must be even to run");
}

DeviceObstacle AboveLimit(std::string_view what, int64_t value, int64_t most,
                          std::string_view limit) {
  if (value <= most) return std::nullopt;
  return absl::StrCat(std::string(what), value, " is above ", most, ", the most ",
                      std::string(limit));
}

absl::StatusOr<Placement> PlaceModel(std::unique_ptr<Device> device, const DeviceObstacle& obstacle,
                                     const ModelDirectory& directory, const LoadOptions& options,
                                     std::vector<std::string> notes) {
  if (device != nullptr && obstacle) {
    notes.push_back(absl::StrCat("runs on the CPU: ", *obstacle, " on ", device->name()));
    device.reset();
  }
  const auto choose = device == nullptr ? ChooseCompute : ChooseDeviceCompute;
  ASSIGN_OR_RETURN(
      const ComputeChoice choice,
      choose(options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype));
  notes.insert(notes.end(), choice.notes.begin(), choice.notes.end());
  Placement placement;
  if (device != nullptr) placement.name = device->name();
  placement.device = std::move(device);
  placement.compute = choice.compute;
  placement.notes = std::move(notes);
  if (choice.int8) {
    const auto& kept = options.int8_keep ? options.int8_keep : directory.serving.int8_keep;
    placement.int8 = std::make_unique<Int8Linears>(kept.value_or(std::vector<std::string>()));
    placement.int8->observer = options.int8_observer;
  }
  return placement;
}

absl::Status NoteInt8(const ModelDirectory& directory, const Placement& place,
                      std::vector<std::string>& notes) {
  if (place.int8 == nullptr) return absl::OkStatus();
  if (const std::vector<std::string> unknown = place.int8->Unknown(); !unknown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory.path, "/longview.json: int8_keep: \"", unknown[0],
                     "\" is no linear of this model that could be int8"));
  }
  std::string note = absl::StrCat("int8: ", place.int8->taken(), " linears, all else in ",
                                  ComputeName(place.compute));
  if (!place.int8->kept().empty()) {
    absl::StrAppend(&note, ", and so ", absl::StrJoin(place.int8->kept(), ", "));
  }
  notes.push_back(std::move(note));
  if (!directory.serving.int8_keep) {
    notes.emplace_back(
        "int8: nothing was compared with fp32; `longview quantize` does, on texts of yours");
  }
  return absl::OkStatus();
}

absl::Status LoadInTurn(const std::string& what, const Device* device,
                        absl::FunctionRef<absl::Status()> load) {
  absl::Status loaded;
  absl::Status guarded = GuardDevice(what, [&] {
    std::optional<Device::Turn> turn;
    if (device != nullptr) turn.emplace(*device);
    loaded = load();
  });
  return guarded.ok() ? loaded : guarded;
}

}  // namespace longview::models
