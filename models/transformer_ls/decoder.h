// Transformer-LS as a Decoder, on the host or a device: sequences over the projection cache, steps
// of one or more passes.
#pragma once

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
#include "models/transformer_ls/context.h"

namespace longview::models {

// Texts that passes of a model on a device read.
DeviceTokenTexts LsDeviceTexts(const LsLmConfig& config, int max_tokens);

class LsDecoder final : public CachedDecoder {
 public:
  // On `device`; null: on the host. RESOURCE_EXHAUSTED if addresses for `room` cannot be had, or,
  // with need and limit, if weights, workspace and cache do not fit the device's free memory. Other
  // errors name the tensor; `origin` begins messages.
  static absl::StatusOr<std::unique_ptr<LsDecoder>> Create(
      const LsLmConfig& config, Checkpoint checkpoint, const std::string& origin, Compute compute,
      int max_tokens, const CacheRoom& room, std::unique_ptr<Device> device = nullptr);
  // The cache's blocks go back through the device.
  ~LsDecoder() override { CloseCache(); }

  int prefill_granule() const override { return config_.granule(); }

  const LsLmConfig& config() const { return config_; }
  const LsLmWeights& weights() const { return weights_; }
  // Shared by all passes; it stays as long as the decoder.
  const LsContext& context() const { return context_; }
  const ComputeContext& host() const { return host_; }
  DecoderSeat* seat() const { return seat_.get(); }  // Null on the host.
  double parameters() const { return weights_.parameters; }
  // Where the model runs, beside the cache.
  double memory_bytes() const { return seat_ ? seat_->memory_bytes() : weights_.memory_bytes; }

 private:
  LsDecoder(const LsLmConfig& config, Checkpoint checkpoint, Compute compute, int max_tokens,
            std::unique_ptr<Device> device);
  absl::Status Load(const std::string& origin, const CacheRoom& room);
  absl::Status LoadOnDevice(const std::string& origin, const CacheRoom& room);
  void Finish(const kernels::CacheShape& shape, kernels::DType blocks);
  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                      EncoderTimes* times) override;

  const LsLmConfig config_;
  const Checkpoint checkpoint_;
  const TorchParallelFor pool_;
  const ComputeContext host_;
  std::unique_ptr<DecoderSeat> seat_;
  LsLmWeights weights_;
  std::unique_ptr<RelativeTables> tables_;
  std::unique_ptr<ZeroBlocks> zero_;
  LsContext context_;
};

}  // namespace longview::models
