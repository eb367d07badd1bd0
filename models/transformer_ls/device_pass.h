// One pass of several sequences' next tokens on a device: those that decode as a recorded step
// (kernels/cuda/token/decode_step.h), those that are prefilled layer by layer. The two share no
// row and no product, so that a row's bits are those it has without the others.
//
// The host waits once per pass, for what somebody reads of it: tokens, rows of logits (more often
// where they are more than kDeviceLogitRows). A pass of which nobody reads anything ends when it is
// handed over, and the next one is laid out while the device computes it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "kernels/cuda/device_blocks.h"
#include "kernels/cuda/step_upload.h"
#include "kernels/cuda/token/decode_runner.h"
#include "models/device/device_memory.h"
#include "models/device/device_sampler.h"
#include "models/generation/device_token_results.h"
#include "models/generation/pass_step.h"
#include "models/layers/stopwatch.h"
#include "models/transformer_ls/device_prefill.h"

namespace longview::models {

// What passes of one model use, one at a time, sized when the model loads.
class DeviceLsWorkspace {
 public:
  // Of the device's memory.
  static double DeviceBytes(const LsLmConfig& config, Compute compute,
                            const kernels::CacheShape& cache, int max_tokens);

  // Throws DeviceError.
  DeviceLsWorkspace(const DeviceLsContext& context, const kernels::CacheShape& cache,
                    int max_tokens);

  const DevicePassBytes& room() const { return room_; }
  std::byte* buffers() const { return device_.data(); }
  // Lists of prefill.
  kernels::cuda::StepUpload& upload() { return upload_; }
  // A pass's rows of logits on their way to the host: kPinnedRows.
  float* pinned_logits() const { return reinterpret_cast<float*>(pinned_.data()); }

  kernels::cuda::DecodeRunner& runner() { return runner_; }
  DeviceSampler& sampler() { return sampler_; }
  const kernels::cuda::DecodeShape& shape() const { return shape_; }
  const kernels::cuda::DecodeWeights& weights() const { return weights_; }

 private:
  const kernels::cuda::DecodeShape shape_;
  const kernels::cuda::DecodeWeights weights_;
  const DevicePassBytes room_;
  const DeviceBlock device_;
  const PinnedBlock pinned_;
  kernels::cuda::StepUpload upload_;
  kernels::cuda::DecodeRunner runner_;
  DeviceSampler sampler_;
};

// Used by the executor's thread. Begin and Advance throw DeviceError and what LibTorch throws.
class DeviceLsPass final : public TokenPass {
 public:
  // Borrowed arguments outlive the pass. With `times` the host waits after every part of the work
  // and adds up: for calibration; of decoding, which is one launch, attention's share is taken to
  // be its share of what is read. REQUIRES: runs within DeviceRules.
  DeviceLsPass(const DeviceLsContext& context, const kernels::cuda::DeviceBlocks& blocks,
               DeviceLsWorkspace& workspace, std::vector<TokenRun> runs, EncoderTimes* times);
  ~DeviceLsPass() override;

  absl::Status Begin() override;
  bool Advance() override;

 private:
  void Decode();
  void BeginPrefill();
  void RunLayer();
  // Hand over what brings results to the host.
  void BringPrefilled();
  void BringDecoded();
  template <typename Body>
  void Timed(double EncoderTimes::*sum, Body&& body);

  const DeviceLsContext& context_;
  const Device& device_;
  const kernels::cuda::DeviceBlocks& blocks_;
  DeviceLsWorkspace& workspace_;
  EncoderTimes* const times_;
  std::vector<TokenRun> decoding_;
  LsPassLayout layout_;  // Of prefill.
  kernels::CacheStep step_;
  bool open_ = false;  // Work was handed over, and the pass has not come to its end.
  DeviceLsLists lists_;
  DeviceLsBuffers buffers_;
  const float* decoded_ = nullptr;  // [decoding_.size(), V] on the device.
  DeviceTokenResults results_;
  int layer_ = 0;
};

}  // namespace longview::models
