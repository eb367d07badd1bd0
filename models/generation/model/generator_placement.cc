#include "models/generation/model/generator_placement.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/device/device_compute.h"

namespace longview::models {

absl::StatusOr<GeneratorStart> StartGeneratorAt(const Device* device,
                                                const ModelDirectory& directory,
                                                const LoadOptions& options, ModelInfo info,
                                                std::vector<std::string> notes) {
  const auto choose = device == nullptr ? ChooseCompute : ChooseDeviceCompute;
  absl::StatusOr<ComputeChoice> choice =
      choose(options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  notes.insert(notes.end(), std::make_move_iterator(choice->notes.begin()),
               std::make_move_iterator(choice->notes.end()));
  choice->notes = std::move(notes);
  return StartGeneratorOn(device == nullptr ? "cpu" : device->name(), *std::move(choice), directory,
                          options, std::move(info));
}

absl::Status CheckWidth(const Device* device, int64_t width, const ModelDirectory& directory) {
  if (device == nullptr || width % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(directory.config_path, ": the width must be even to run on ", device->name()));
}

}  // namespace longview::models
