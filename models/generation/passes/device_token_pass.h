// A pass over a decoder's layers on a device: work handed to its stream, layer by layer. The host
// waits once per pass, for what somebody reads of it: tokens, rows of logits (more often where
// they are more than kDeviceLogitRows). A pass of which nobody reads anything ends when it is
// handed over.
//
// A pass of which all linears take few rows, as steps of decoding do in families with weights for
// that, is handed over as a whole, and recorded: later ones of like sizes launch the recording
// (kernels/cuda/graph_cache.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/cuda/device_blocks.h"
#include "kernels/cuda/graph_cache.h"
#include "kernels/cuda/step_upload.h"
#include "models/device/device_memory.h"
#include "models/device/device_run.h"
#include "models/generation/decoder/pass_step.h"
#include "models/generation/passes/device_token_results.h"
#include "models/generation/passes/token_forward.h"
#include "models/generation/sampling/device_sampler.h"
#include "models/ops/device_backend.h"

namespace longview::models {

// Limits of one pass (PassStep::Rules): tokens of prefill, runs of prefill, runs of decoding.
inline constexpr int64_t kDevicePassTokens = 2048;
inline constexpr int kDevicePassRuns = 64;
// Rows of logits that are made at a time.
inline constexpr int64_t kDeviceLogitRows = 64;

PassStep::Rules DeviceRules(std::string family, int vocab);
// Options of a cache whose blocks lie in `memory` and whose steps are passes within the limits.
kernels::ProjectionCache::Options DeviceCacheOptions(kernels::BlockMemory* memory);

// Bytes of a pass on the device.
struct DeviceTokenNeed {
  size_t lists = 0;
  size_t buffers = 0;
};

using MakeForward = absl::FunctionRef<std::unique_ptr<TokenForward>(std::vector<TokenRun> runs)>;

// Texts that passes read.
struct DeviceTokenTexts {
  DeviceTokenTexts(int max_tokens = 0) : max_tokens(max_tokens) {}  // NOLINT: of this length.

  int max_tokens;         // The longest.
  int64_t boundary = 0;   // Equal to PassStep::Rules::boundary.
  std::vector<int> ends;  // Lengths at which a pass may need more than at the longest.
};

// Enough for any pass of these texts within the limits.
DeviceTokenNeed MostTokenNeed(Compute compute, const DeviceTokenTexts& texts, MakeForward make);

// Memory that the passes of one model use, one at a time, sized when the model loads.
class DeviceTokenWorkspace {
 public:
  // Bytes of the device's memory.
  static double DeviceBytes(const DeviceTokenNeed& room, int vocab);

  // Throws DeviceError.
  DeviceTokenWorkspace(const Device& device, const DeviceTokenNeed& room, int vocab);

  const DeviceTokenNeed& room() const { return room_; }
  int vocab() const { return vocab_; }
  std::byte* buffers() const { return buffers_.data(); }
  kernels::cuda::StepUpload& upload() { return upload_; }
  // Rows of logits on their way to the host: kDeviceLogitRows.
  float* pinned_logits() const { return reinterpret_cast<float*>(pinned_.data()); }
  DeviceSampler& sampler() { return sampler_; }
  kernels::cuda::GraphCache& recordings() { return recordings_; }

 private:
  // Recordings grow with the powers of two of texts' lengths, with the rows, and with what some of
  // them do that others do not.
  static constexpr size_t kRecordings = 128;

  const DeviceTokenNeed room_;
  const int vocab_;
  const DeviceBlock buffers_;
  const PinnedBlock pinned_;
  kernels::cuda::StepUpload upload_;
  DeviceSampler sampler_;
  kernels::cuda::GraphCache recordings_;
};

// Used by the executor's thread. Begin and Advance throw DeviceError and what LibTorch throws.
class DeviceTokenPass final : public TokenPass {
 public:
  // Borrowed arguments outlive the pass. With `times` the host waits after every part of the work
  // and adds up, for calibration. REQUIRES: runs within the limits; the forward makes
  // kDeviceLogitRows rows of logits at a time.
  DeviceTokenPass(std::unique_ptr<TokenForward> forward, const Device& device, Compute compute,
                  const kernels::cuda::DeviceBlocks& blocks, DeviceTokenWorkspace& workspace,
                  RunTimes* times);
  ~DeviceTokenPass() override;

  absl::Status Begin() override;
  bool Advance() override;

 private:
  void Stage();
  // All layers as one recording; the logits of all wanted rows.
  Rows RunRecorded();
  // Logits of all wanted rows, to where their runs want them; tokens that are chosen on the device
  // instead of logits.
  void BringResults();
  bool End();
  // Hands over what brings rows [first, first + count) of the wanted ones to the host.
  void BringRows(const Rows& logits, int64_t first, int64_t count);
  // A wanted row: its run, and its number among the run's wanted ones.
  struct WantedRow {
    const TokenRun* run;
    int64_t row;
  };

  const std::unique_ptr<TokenForward> forward_;
  const Device& device_;
  const kernels::cuda::DeviceBlocks& blocks_;
  DeviceTokenWorkspace& workspace_;
  const bool timed_;
  const DeviceTimer timer_;
  DeviceBackend ops_;
  ForwardNeed need_;
  bool recorded_ = false;          // The pass is a recording. Set by Begin.
  kernels::cuda::GraphKey sizes_;  // Key of the recording.
  std::vector<WantedRow> wanted_;
  bool open_ = false;  // Work was handed over, and the pass has not come to its end.
  DeviceTokenResults results_;
  int layer_ = 0;
};

}  // namespace longview::models
