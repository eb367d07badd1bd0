// A stack without an encoder as a Decoder, on the host or a device: language models of one stream.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/cached_decoder.h"
#include "models/generation/decoder_seat.h"
#include "models/layers/compute_context.h"
#include "models/parallel.h"
#include "models/stack/context.h"

namespace longview::models {

class StackDecoder final : public CachedDecoder {
 public:
  struct Parts {
    StackConfig config;
    std::unique_ptr<const Checkpoint> checkpoint;  // Its tables back the weights.
    // As LoadLongformerLmWeights, of this checkpoint.
    std::function<absl::StatusOr<StackWeights>(std::optional<Compute>, DeviceStore*)> load;
    Compute compute = Compute::kFp32;
    int max_tokens = 0;
    CacheRoom room = 0;
  };
  // On `device`; null: on the host. RESOURCE_EXHAUSTED if addresses for `room` cannot be had, or,
  // with need and limit, if weights, workspace and cache do not fit the device's free memory. Other
  // errors name the tensor; `origin` begins messages.
  static absl::StatusOr<std::unique_ptr<StackDecoder>> Create(Parts parts,
                                                              const std::string& origin,
                                                              std::unique_ptr<Device> device);
  // The cache's blocks go back through the device.
  ~StackDecoder() override { CloseCache(); }

  int prefill_granule() const override { return static_cast<int>(kernels::kBlockSlots); }
  double parameters() const { return weights_.parameters; }
  // Where the model runs, beside the cache.
  double memory_bytes() const { return seat_ ? seat_->memory_bytes() : weights_.memory_bytes; }

 private:
  StackDecoder(Parts parts, std::unique_ptr<Device> device);
  absl::Status Load(const std::string& origin);
  absl::Status LoadOnDevice(const std::string& origin);
  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                      EncoderTimes* times) override;

  const Parts parts_;
  const TorchParallelFor pool_;
  const ComputeContext host_;
  std::unique_ptr<DecoderSeat> seat_;  // Null on the host.
  StackWeights weights_;
  StackContext context_;
};

}  // namespace longview::models
