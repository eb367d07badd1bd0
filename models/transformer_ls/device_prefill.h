// What a pass of prefill does on a device: pass.h's steps for chunks of prompts, as work handed to
// one stream. Nothing here waits.
//
// Products are LibTorch's, in panels (device_linear.h); bits of a row do not depend on the rows
// beside it, nor on where a prompt is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cache/projection_cache.h"
#include "models/dense/scratch.h"
#include "models/device/device.h"
#include "models/generation/device_token_pass.h"
#include "models/layers/stopwatch.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/device_lists.h"
#include "models/transformer_ls/device_weights.h"

namespace longview::models {

// What every pass of one model shares. Borrowed.
struct DeviceLsContext {
  const LsLmConfig* config = nullptr;
  const DeviceLsWeights* weights = nullptr;
  Compute compute = Compute::kFp32;
  const Device* device = nullptr;
  kernels::ProjectionCache* cache = nullptr;
};

// The device's memory of one pass, carved from its layout. "T" is an element of the compute type;
// what linears read or write holds kDevicePanelTail rows more than it has.
struct DeviceLsBuffers {
  float* x = nullptr;           // [rows, d] residual stream, normalised where pre_ln.
  std::byte* input = nullptr;   // T [rows, d], x rounded; x itself for fp32.
  std::byte* y = nullptr;       // T [rows, 3d + h * r], later what linears give, [rows, d]
  std::byte* keys = nullptr;    // T [rows, d], of the window.
  std::byte* values = nullptr;  // T [rows, d]
  float* scores = nullptr;      // [rows, h * r] of segments.
  std::byte* z = nullptr;       // T [rows, d] attention's output.
  std::byte* wide = nullptr;    // T [rows, f]
  std::byte* states = nullptr;  // DeviceStateBytes per closing piece.
  std::byte* partials = nullptr;
  // LsSchedule::kBlocks: averages of hidden states, and their projections.
  std::byte* hidden = nullptr;  // T [closed segments * r, d]
  std::byte* early = nullptr;   // T [closed segments * r, 3d + h * r]
  // Of kDeviceLogitRows rows, in panels of kDevicePanel.
  std::byte* logit_input = nullptr;  // T [rows, d]
  std::byte* rounded = nullptr;      // T [rows, V]
  float* logits = nullptr;           // [rows, V]
};

// Bytes of a pass of prefill.
struct DevicePassBytes {
  size_t lists = 0;
  size_t buffers = 0;

  bool Fits(const DevicePassBytes& room) const {
    return lists <= room.lists && buffers <= room.buffers;
  }
};

struct CarvedPass {
  DevicePassBytes bytes;    // Exactly.
  DeviceLsBuffers buffers;  // From `base` on.
};

// `base` null: bytes are counted, for no memory.
CarvedPass CarvePass(const LsLmConfig& config, Compute compute, const LsPassLayout& layout,
                     std::byte* base);

// Enough for any pass within the limits, of texts of up to `max_tokens` tokens.
DevicePassBytes MostPassBytes(const LsLmConfig& config, Compute compute, int max_tokens);

// The steps over one pass. Functions throw DeviceError and what LibTorch throws; within a
// Device::Turn.
class DevicePrefill {
 public:
  DevicePrefill(const DeviceLsContext& context, const LsPassLayout& layout,
                const DeviceLsLists& lists, const DeviceLsBuffers& buffers)
      : context_(context),
        config_(*context.config),
        device_(*context.device),
        layout_(layout),
        lists_(lists),
        b_(buffers) {}

  void Embed() const;
  // Query, key, value and scores of all rows; sums of segments; pages of those that end.
  void Project(int layer) const;
  // Chunks attend before any row of a window is written, pieces inside a block after.
  // `windows_only`: nobody reads what comes of it.
  void Attend(int layer, bool windows_only) const;
  // From z to the layer's output.
  void Finish(int layer) const;
  // Logits of `count` wanted rows from number `first` on. REQUIRES: count <= kDeviceLogitRows.
  void Logits(int64_t first, int64_t count) const;

 private:
  const DeviceLsLayer& LayerOf(int layer) const {
    return context_.weights->layers[static_cast<size_t>(layer)];
  }
  template <typename Args>
  void Do(kernels::cuda::Status (*call)(kernels::cuda::Stream*, const Args&), const char* what,
          const std::type_identity_t<Args>& args) const {
    device_.Check(call(device_.stream(), args), what);
  }
  kernels::DType dtype() const;
  int64_t projected() const { return 3 * config_.width + config_.columns(); }
  int64_t row_bytes() const { return config_.width * ElementBytes(context_.compute); }
  // x = norm(x + y + bias); input = x rounded.
  void Follow(const std::byte* y, const float* bias, const DeviceNorm* norm) const;
  void PoolSegments(int layer, const DevicePieces& pieces) const;
  // `second`: another value; null: none. Columns of the states from `column0` on.
  void AppendSums(int layer, const DevicePieces& pieces, const kernels::cuda::PoolRows& values,
                  const std::byte* second, int column0) const;
  kernels::cuda::SegmentSums ClosingSums(int layer, int column0) const;
  void WritePages(int layer) const;
  void WriteEarlyPages(int layer) const;
  kernels::cuda::SpanSource SourceOf(kernels::ScheduleSource kind, int layer,
                                     const DeviceLsGroup& group) const;
  void AttendGroup(int layer, const DeviceLsGroup& group) const;
  void WriteWindow(int layer, const DeviceLsGroup& group) const;

  const DeviceLsContext& context_;
  const LsLmConfig& config_;
  const Device& device_;
  const LsPassLayout& layout_;
  const DeviceLsLists& lists_;
  const DeviceLsBuffers& b_;
};

}  // namespace longview::models
