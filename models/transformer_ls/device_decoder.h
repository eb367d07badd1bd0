// Transformer-LS as a Decoder on a device: weights, tables of positions, cache and workspace in its
// memory, asked for when it loads and never after.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/device_blocks.h"
#include "models/checkpoint/checkpoint.h"
#include "models/device/device.h"
#include "models/generation/cached_decoder.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/device_pass.h"
#include "models/transformer_ls/device_weights.h"

namespace longview::models {

class DeviceLsDecoder final : public CachedDecoder {
 public:
  // RESOURCE_EXHAUSTED, with need and limit, if weights, workspace and a cache for all of `room` do
  // not fit the device's free memory. Other errors name the tensor; `origin` begins messages.
  static absl::StatusOr<std::unique_ptr<DeviceLsDecoder>> Create(
      const LsLmConfig& config, const Checkpoint& checkpoint, const std::string& origin,
      Compute compute, int max_tokens, const CacheRoom& room, std::unique_ptr<Device> device);
  ~DeviceLsDecoder() override;

  int prefill_granule() const override { return config_.granule(); }

  const LsLmConfig& config() const { return config_; }
  // What passes share; it stays as long as the decoder.
  const DeviceLsContext& context() const { return context_; }
  double parameters() const { return weights_.parameters; }
  // Of the device, beside the cache.
  double memory_bytes() const { return memory_bytes_; }

  // What Create asks the device for, beside its libraries.
  static double DeviceBytes(const LsLmConfig& config, Compute compute, int max_tokens,
                            const CacheRoom& room);

 private:
  DeviceLsDecoder(const LsLmConfig& config, Compute compute, int max_tokens,
                  std::unique_ptr<Device> device);
  absl::Status Load(const Checkpoint& checkpoint, const std::string& origin, const CacheRoom& room);
  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                      EncoderTimes* times) override;

  const LsLmConfig config_;
  const std::unique_ptr<const Device> device_;
  kernels::cuda::DeviceBlocks blocks_;
  DeviceLsWeights weights_;
  DeviceLsContext context_;
  std::unique_ptr<DeviceLsWorkspace> workspace_;
  double memory_bytes_ = 0;
};

}  // namespace longview::models
