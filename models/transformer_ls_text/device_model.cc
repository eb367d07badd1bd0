#include "models/transformer_ls_text/device_model.h"

#include <utility>

#include "models/encoder/device_parts_family.h"
#include "models/transformer_ls_text/device_part.h"
#include "models/transformer_ls_text/family.h"
#include "models/transformer_ls_text/heads.h"

namespace longview::models {
namespace {

class DeviceLsText final : public DevicePartsFamily<LsText, DeviceLsTextPart> {
 public:
  using DevicePartsFamily::DevicePartsFamily;

 private:
  int64_t ExtraRows(const EncoderSequence&) const override {
    return config_.cls == LsClass::kNone ? 0 : 1;
  }
  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs,
                                       std::span<const SequenceRows> rows) const override {
    return ComputeLsTextHeads(
        context_, [&](int sequence) { return rows[sequence].extra.data(); }, inputs);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildDeviceLsText(const ModelDirectory& directory,
                                                                 Compute compute,
                                                                 std::unique_ptr<Device> device) {
  return BuildOnDevice<DeviceLsText>(directory, compute, std::move(device));
}

}  // namespace longview::models
