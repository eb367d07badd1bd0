// A language model without an encoder as a Decoder, on the host or a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/generation/cached_decoder.h"
#include "models/generation/decoder_seat.h"
#include "models/generation/token_model.h"
#include "models/layers/compute_context.h"
#include "models/parallel.h"

namespace longview::models {

// Texts that passes of a model on a device read.
DeviceTokenTexts TextsOf(const TokenModel& model, int max_tokens);

class ForwardDecoder final : public CachedDecoder {
 public:
  struct Limits {
    int max_tokens = 0;
    CacheRoom room = 0;
  };
  // On `device`; null: on the host. RESOURCE_EXHAUSTED if addresses for the room cannot be had, or,
  // with need and limit, if weights, workspace and cache do not fit the device's free memory. Other
  // errors name the tensor; `origin` begins messages.
  static absl::StatusOr<std::unique_ptr<ForwardDecoder>> Create(std::unique_ptr<TokenModel> model,
                                                                const std::string& origin,
                                                                Compute compute,
                                                                const Limits& limits,
                                                                std::unique_ptr<Device> device);
  // The cache's blocks go back through the device.
  ~ForwardDecoder() override { CloseCache(); }

  int prefill_granule() const override { return model_->granule(); }
  const TokenModel& model() const { return *model_; }
  // How and where its passes run, for benchmarks. Null: on the host.
  const TokenFrame& frame() const { return frame_; }
  const ComputeContext& host() const { return host_; }
  DecoderSeat* seat() const { return seat_.get(); }
  // Where the model runs, beside the cache.
  double memory_bytes() const { return seat_ ? seat_->memory_bytes() : model_->memory_bytes(); }

 private:
  ForwardDecoder(std::unique_ptr<TokenModel> model, Compute compute, const Limits& limits,
                 std::unique_ptr<Device> device);
  absl::Status Load(const std::string& origin, const CacheRoom& room);
  absl::Status LoadOnDevice(const std::string& origin, const kernels::CacheShape& shape,
                            const CacheRoom& room);
  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                      EncoderTimes* times) override;

  const std::unique_ptr<TokenModel> model_;
  const TorchParallelFor pool_;
  const ComputeContext host_;
  std::unique_ptr<DecoderSeat> seat_;  // Null on the host.
  TokenFrame frame_;
};

}  // namespace longview::models
