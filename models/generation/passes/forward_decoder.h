// A token model as a Decoder, on the host or a device: its sequences live in one projection cache,
// what is kept of documents in another, its steps are passes over all layers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/projection_cache.h"
#include "models/cost/stopwatch.h"
#include "models/dense/scratch_pool.h"
#include "models/dense/weight_format.h"
#include "models/generation/decoder/cache_room.h"
#include "models/generation/decoder/decoder.h"
#include "models/generation/decoder/encoder_stage.h"
#include "models/generation/decoder/pass_step.h"
#include "models/generation/passes/counted_costs.h"
#include "models/generation/passes/decoder_placement.h"
#include "models/generation/passes/token_model.h"
#include "models/layers/compute_context.h"
#include "models/parallel.h"

namespace longview::models {

// Texts that passes of a model on a device read.
DeviceTokenTexts TextsOf(const TokenModel& model, int max_tokens);

class ForwardDecoder final : public Decoder {
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
                                                                WeightFormat format,
                                                                const Limits& limits,
                                                                std::unique_ptr<Device> device);
  ~ForwardDecoder() override;

  int vocab_size() const override { return rules_.vocab; }
  int max_tokens() const override { return max_tokens_; }
  int prefill_alignment() const override;
  const DecoderCosts& costs() const override { return *costs_; }
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt, uint64_t space) override;
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) override;
  EncoderStage* encoder() override;
  // Steps that a benchmark times go on adding their seconds.
  absl::Status WarmUp() override;
  CacheUse cache() const override;

  const TokenModel& model() const { return *model_; }
  // Bytes of the weights, on the device or the host, beside the caches.
  double memory_bytes() const {
    return placement_ ? placement_->memory_bytes() : model_->memory_bytes();
  }

  // ---- For tests and benchmarks ----
  // How and where its passes run; null: on the host.
  const TokenFrame& frame() const { return frame_; }
  const ComputeContext& host() const { return host_; }
  DecoderPlacement* placement() const { return placement_.get(); }
  kernels::ProjectionCache& projection_cache() { return *cache_; }
  // Steps add their seconds to it from here on; null: no more.
  void set_times(RunTimes* times) { times_ = times; }

 private:
  ForwardDecoder(std::unique_ptr<TokenModel> model, Compute compute, const Limits& limits,
                 std::unique_ptr<Device> device);
  absl::Status Load(const std::string& origin, WeightFormat format, const CacheRoom& room);
  absl::Status LoadOnDevice(const std::string& origin, std::vector<kernels::CacheShape> caches,
                            const CacheRoom& room);
  void CountCosts(const kernels::CacheShape& shape);
  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs);

  class Stage;  // How documents are read.

  const std::unique_ptr<TokenModel> model_;
  const PassStep::Rules rules_;
  const int max_tokens_;
  const TorchParallelFor pool_;
  const ComputeContext host_;
  const std::unique_ptr<DecoderPlacement> placement_;  // Null on the host; outlives the caches.
  TokenFrame frame_;
  std::unique_ptr<kernels::CacheBudget> budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_, documents_;
  std::unique_ptr<CountedCosts> costs_;
  ScratchPool scratch_;
  const std::unique_ptr<Stage> stage_;  // Null without an encoder.
  RunTimes* times_ = nullptr;
};

}  // namespace longview::models
