// A decoder's place on its device: weights, the memory that its passes and caches use, asked for
// when it loads and never after.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/cuda/device_blocks.h"
#include "models/dense/weight_format.h"
#include "models/device/device.h"
#include "models/generation/decoder/cache_room.h"
#include "models/generation/passes/device_token_pass.h"
#include "models/ops/weight_placer.h"

namespace longview::models {

// Used by the thread that loads, then by the executor's.
class DecoderPlacement {
 public:
  DecoderPlacement(std::unique_ptr<Device> device, Compute compute);

  const Device& device() const { return *device_; }
  // Memory for caches, which go before the placement does.
  kernels::cuda::DeviceBlocks& blocks() { return blocks_; }
  // The device's memory that it takes, beside the caches.
  double memory_bytes() const { return memory_bytes_; }

  // Memory that a decoder asks its device for, beside weights.
  struct Claims {
    int vocab = 0;
    DeviceTokenTexts texts;
    std::vector<kernels::CacheShape> caches;  // Each for all of `room`.
    CacheRoom room = 0;
    // With an encoder: the most that a document needs, from weights that have sizes.
    std::function<DeviceRunBytes()> document;
  };
  using LoadWeights = absl::FunctionRef<absl::Status(std::optional<WeightFormat>, DeviceStore&)>;

  // Loads the weights, first their sizes alone, and takes the workspaces of passes and documents;
  // `make` makes a forward to be counted, from weights that have sizes. RESOURCE_EXHAUSTED, with
  // need and limit, if they and the caches do not fit the device's free memory; `origin` begins
  // messages. May throw DeviceError and what LibTorch throws; within a Device::Turn.
  absl::Status Load(const std::string& origin, const Claims& claims, LoadWeights load,
                    MakeForward make);

  // Workspace in which documents are read, one at a time; null without an encoder.
  DeviceWorkspace* documents() const { return documents_.get(); }

  // The forward as a pass. After Load; one at a time.
  std::unique_ptr<TokenPass> Run(std::unique_ptr<TokenForward> forward, RunTimes* times);

 private:
  const std::unique_ptr<const Device> device_;
  const Compute compute_;
  kernels::cuda::DeviceBlocks blocks_;
  std::unique_ptr<DeviceBlock> weights_;
  std::unique_ptr<DeviceTokenWorkspace> workspace_;
  std::unique_ptr<DeviceWorkspace> documents_;
  double memory_bytes_ = 0;
};

}  // namespace longview::models
