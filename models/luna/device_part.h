// Documents that go through a Luna encoder on a device together: LunaBatch's layers as work for one
// stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/device/device_attention.h"
#include "models/device/device_rows.h"
#include "models/encoder/device_part.h"
#include "models/encoder/device_parts_family.h"
#include "models/luna/config.h"
#include "models/luna/device_weights.h"
#include "models/luna/plan.h"

namespace longview::models {

// Results are the wanted rows and, where the head reads them, the active rows of P. See DevicePart.
class DeviceLunaPart final : public DeviceEncoderPart {
 public:
  using Context = DevicePartContext<LunaConfig, DeviceLunaWeights>;

  // REQUIRES: everything borrowed outlives it.
  DeviceLunaPart(const Context& context, Sequences sequences);

  void Stage(StagedLists& lists) override;
  void Carve(Carver& carver) override;

  int layers() const override { return config_.layers; }
  void Embed() override;
  void RunLayer(int layer, const DeviceTimer& timer) override;
  void AddResults(DeviceResults& results) const override;

 private:
  // T is the compute type; what linears touch has kDevicePanelTail rows more.
  struct Buffers {
    float* x = nullptr;                 // [rows, d] residual stream of tokens.
    float* kept = nullptr;              // [wanted, d] of it, in the last layer.
    std::byte* input = nullptr;         // T [rows, d] what a layer reads.
    std::byte* kept_input = nullptr;    // T [wanted, d] the same in the last layer.
    std::byte* projections = nullptr;   // T [rows, 3d] or tied [rows, 2d], later what linears give.
    std::byte* queries = nullptr;       // T [wanted, d] of the last layer.
    std::byte* z = nullptr;             // T [rows, d] unpacked context.
    std::byte* wide = nullptr;          // T [rows, F]
    float* p = nullptr;                 // [projected rows, d] residual stream of P.
    std::byte* p_input = nullptr;       // T [projected rows, d]
    std::byte* pack_queries = nullptr;  // T [projected rows, d]
    std::byte* packed = nullptr;        // T [projected rows, d]
    std::byte* unpack_keys = nullptr;   // T [projected rows, 2d] or tied [projected rows, d].
    std::byte* partials = nullptr;      // Unfinished attention.
  };

  bool pre_norm() const { return config_.norms == NormPlace::kPre; }
  // Whether what layers read is a buffer of its own.
  bool has_input() const { return pre_norm() || context_.compute != Compute::kFp32; }
  bool last(int layer) const { return layer + 1 == config_.layers; }
  int64_t parts() const { return config_.tied_kv ? 2 : 3; }
  int64_t projected_rows() const { return plan_.projected_rows(); }
  kernels::cuda::SpanSource Keys(std::byte* keys, int64_t row, int heads) const;

  void EnterLayers() const;
  void Project(int layer) const;
  void Pack() const;
  void Unpack(int layer) const;
  void UpdateProjected(int layer) const;
  void Finish(int layer) const;

  const Context& context_;
  const LunaConfig& config_;
  const int64_t width_;
  const DeviceRows rows_;
  const LunaPlan plan_;

  // On the device.
  Tokens tokens_;
  DevicePlan pack_, unpack_, unpack_wanted_;
  const int32_t* wanted_rows_ = nullptr;     // [wanted]
  const int32_t* projected_rows_ = nullptr;  // [projected rows] of P as it enters.
  Buffers buffers_;
};

}  // namespace longview::models
