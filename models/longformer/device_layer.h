// The steps of Longformer's forward on a device: what EncoderRun does on the host, as work handed
// to one stream. Nothing here waits.
#pragma once

#include "models/device/device.h"
#include "models/longformer/device_batch.h"
#include "models/longformer/device_buffers.h"
#include "models/longformer/device_weights.h"

namespace longview::models {

// What every batch of one model shares. Borrowed, immutable.
struct DeviceEncoderContext {
  const LongformerConfig* config = nullptr;
  const DeviceLongformerWeights* weights = nullptr;
  Compute compute = Compute::kFp32;
  const Device* device = nullptr;
};

// The steps over one batch. Functions throw DeviceError and what LibTorch throws; within a
// Device::Turn.
class DeviceLayers {
 public:
  DeviceLayers(const DeviceEncoderContext& context, const DeviceBatch& batch,
               const DeviceBuffers& buffers)
      : context_(context), batch_(batch), buffers_(buffers) {}

  void Embed() const;
  // qkv = input Wqkv + bias, for the rows that need it.
  void ProjectLocal(int layer) const;
  void AttendLocal(int layer) const;
  // The rows of z that belong to global tokens; see global_rows.h.
  void AttendGlobal(int layer) const;
  // From z to the layer's output.
  void Tail(int layer) const;

  // The last layer's output, [outputs, H].
  const float* Output() const;

 private:
  const DeviceLongformerLayer& LayerOf(int layer) const { return context_.weights->layers[layer]; }
  int64_t row_bytes() const { return context_.config->width * ElementBytes(context_.compute); }
  kernels::DType dtype() const;
  kernels::cuda::SpanCall HeadsCall() const;
  void Copy(const kernels::cuda::CopyRows& rows) const;
  void AddResidual(float* x, const DeviceLinear& linear, const DeviceNorm& norm, int64_t rows,
                   std::byte* copy) const;
  // query_global of the listed rows, without its bias, in global_queries.
  void ProjectGlobalQueries(int layer, const int32_t* rows, int64_t count) const;
  void AttendFolded(int layer, const FoldBatch& fold) const;
  void AttendUnfolded(int layer) const;

  const DeviceEncoderContext& context_;
  const DeviceBatch& batch_;
  const DeviceBuffers& buffers_;
};

}  // namespace longview::models
