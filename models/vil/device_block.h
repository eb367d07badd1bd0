// The steps of a stage on a device: tokens of the map before, block pairs, what comes back. What
// batch.cc and block.cc do on the host, as work handed to one stream. Nothing here waits.
#pragma once

#include <cstdint>

#include "models/device/device.h"
#include "models/device/device_rows.h"
#include "models/device/device_run.h"
#include "models/layers/span_rows.h"
#include "models/vil/device_buffers.h"
#include "models/vil/device_stage.h"
#include "models/vil/weights.h"

namespace longview::models {

// What every batch of one model shares. Borrowed, immutable but for the plans' cache.
struct DeviceVilContext {
  const VilContext* plans = nullptr;  // Configuration, and what is planned with; no weights on it.
  const VilWeights* weights = nullptr;
  Compute compute = Compute::kFp32;
  const Device* device = nullptr;
};

// An Added table of floats, [heads, entries].
kernels::cuda::SpanTable DeviceBiasTable(const float* values, int64_t entries);

// Functions throw DeviceError and what LibTorch throws; within a Device::Turn.
class DeviceVilSteps {
 public:
  DeviceVilSteps(const DeviceVilContext& context, size_t index, const DeviceVilStage& stage,
                 const DeviceVilBuffers& buffers);

  // x of this stage, of pictures or of `before`, the residual stream of the stage before.
  void MakeTokens(const float* before) const;
  void RunBlock(int block, const DeviceTimer& timer) const;

 private:
  const VilBlock& BlockOf(int block) const { return weights_.blocks[block]; }
  int64_t row_bytes() const { return stage_.width * ElementBytes(context_.compute); }
  int64_t rows() const { return planned_.plan().rows; }
  kernels::DType dtype() const { return SpanType(context_.compute); }
  const kernels::cuda::MapsApi& maps() const { return device_.api().maps; }

  // Rows of T, [d] each.
  void Copy(const void* in, void* out, const int32_t* from, const int32_t* to, int64_t rows) const;
  void Project(const VilBlock& block) const;
  void ProjectGlobals(const VilBlock& block) const;
  void ProjectByPositions(const VilBlock& block) const;
  void ProjectByReduction(const VilBlock& block) const;
  void MakeBiases(int block) const;
  void Attend(int block) const;
  void AttendByFeatures(const VilBlock& block) const;
  void AttendSpans(int block) const;
  kernels::cuda::SpanCall HeadsCall(int block, bool separate_globals) const;
  // device_long_short.cc
  void ProjectLongShort(const VilBlock& block) const;
  void MakeLandmarks(const VilBlock& block) const;
  void AttendLongShort(int block) const;
  void Finish(int block) const;
  void ApplyOuts(const VilBlock& block) const;

  const DeviceVilContext& context_;
  const Device& device_;
  const DeviceVilStage& planned_;
  const VilStage& stage_;
  const VilStageWeights& weights_;
  const void* const zeros_;
  const DeviceVilBuffers& buffers_;
  const DeviceRows row_work_;
};

}  // namespace longview::models
