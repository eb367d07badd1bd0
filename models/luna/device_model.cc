#include "models/luna/device_model.h"

#include <utility>

#include "models/encoder/device_parts_family.h"
#include "models/luna/device_part.h"
#include "models/luna/family.h"

namespace longview::models {
namespace {

class DeviceLuna final : public DevicePartsFamily<Luna, DeviceLunaPart> {
 public:
  using DevicePartsFamily::DevicePartsFamily;

 private:
  int64_t ExtraRows(const EncoderSequence& sequence) const override {
    return ReadsProjected(config_) ? ActiveRows(config_, sequence) : 0;
  }
  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs,
                                       std::span<const SequenceRows> rows) const override {
    const auto projected = [&](int sequence) {
      const std::vector<float>& extra = rows[sequence].extra;
      return LunaProjectedRows{extra.data(), static_cast<int64_t>(extra.size()) / config_.width};
    };
    return ComputeLunaHeads(context_, projected, inputs);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildDeviceLuna(const ModelDirectory& directory,
                                                               Compute compute,
                                                               std::unique_ptr<Device> device) {
  return BuildOnDevice<DeviceLuna>(directory, compute, std::move(device));
}

}  // namespace longview::models
