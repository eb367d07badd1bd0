#include "models/cst/device_model.h"

#include <utility>

#include "models/cst/device_part.h"
#include "models/cst/family.h"
#include "models/encoder/device_parts_family.h"

namespace longview::models {
namespace {

class DeviceCst final : public DevicePartsFamily<Cst, DeviceCstPart> {
 public:
  using DevicePartsFamily::DevicePartsFamily;

 private:
  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs,
                                       std::span<const SequenceRows>) const override {
    return ComputeCstHeads(context_, inputs);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildDeviceCst(const ModelDirectory& directory,
                                                              Compute compute,
                                                              std::unique_ptr<Device> device) {
  return BuildOnDevice<DeviceCst>(directory, compute, std::move(device));
}

}  // namespace longview::models
