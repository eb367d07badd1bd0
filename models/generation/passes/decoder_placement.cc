#include "models/generation/passes/decoder_placement.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/device/device_admission.h"
#include "models/status_macros.h"

namespace longview::models {

DecoderPlacement::DecoderPlacement(std::unique_ptr<Device> device, Compute compute)
    : device_(std::move(device)),
      compute_(compute),
      blocks_(device_->api(), device_->index(), device_->stream()) {}

absl::Status DecoderPlacement::Load(const std::string& origin, const Claims& claims,
                                    LoadWeights load, MakeForward make) {
  DeviceStore store(compute_);
  RETURN_IF_ERROR(load(std::nullopt, store));
  const DeviceTokenNeed need = MostTokenNeed(compute_, claims.texts, make);
  const DeviceRunBytes document = claims.document ? claims.document() : DeviceRunBytes();
  const double workspace = DeviceTokenWorkspace::DeviceBytes(need, claims.vocab) +
                           static_cast<double>(document.device());
  std::vector<DeviceClaim> parts = {{"weights", static_cast<double>(store.bytes())},
                                    {"workspace", workspace}};
  for (const kernels::CacheShape& shape : claims.caches) {
    const int64_t bytes = kernels::ProjectionCache::MemoryBytes(shape, DeviceCacheOptions(nullptr),
                                                                claims.room.capacity());
    parts.push_back({absl::StrCat("a cache of ", claims.room.capacity(), " bytes (cache_bytes)"),
                     static_cast<double>(bytes)});
  }
  absl::Status status = FitsDevice(origin, device_->name(), parts, device_->FreeBytes());
  if (!status.ok()) return status;
  memory_bytes_ = static_cast<double>(store.bytes()) + workspace;
  store.Allocate(*device_);
  // Values that stay on the host are fp32.
  if (status = load(Compute::kFp32, store); !status.ok()) return status;
  weights_ = store.TakeBlock();
  workspace_ = std::make_unique<DeviceTokenWorkspace>(*device_, need, claims.vocab);
  if (claims.document) documents_ = std::make_unique<DeviceWorkspace>(*device_, document);
  return absl::OkStatus();
}

std::unique_ptr<TokenPass> DecoderPlacement::Run(std::unique_ptr<TokenForward> forward,
                                                 RunTimes* times) {
  return std::make_unique<DeviceTokenPass>(std::move(forward), *device_, compute_, blocks_,
                                           *workspace_, times);
}

}  // namespace longview::models
