// Documents that go through a Composite Slice encoder on a device together: CstBatch's layers as
// work for one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/cst/config.h"
#include "models/cst/device_weights.h"
#include "models/cst/plan.h"
#include "models/device/device_attention.h"
#include "models/device/device_rows.h"
#include "models/encoder/device_part.h"
#include "models/encoder/device_parts_family.h"

namespace longview::models {

// Results are the wanted rows. See DevicePart.
class DeviceCstPart final : public DeviceEncoderPart {
 public:
  using Context = DevicePartContext<CstConfig, DeviceCstWeights>;

  // REQUIRES: everything borrowed outlives it.
  DeviceCstPart(const Context& context, Sequences sequences);

  void Stage(StagedLists& lists) override;
  void Carve(Carver& carver) override;

  int layers() const override { return config_.layers; }
  void Embed() override;
  void RunLayer(int layer, const DeviceTimer& timer) override;
  void AddResults(DeviceResults& results) const override;

 private:
  // T is the compute type; what linears touch has kDevicePanelTail rows more.
  struct Buffers {
    float* x = nullptr;                 // [rows, D] residual stream.
    float* kept = nullptr;              // [wanted, D] of it, in the last layer.
    std::byte* input = nullptr;         // T [rows, D] what attention reads.
    std::byte* kept_input = nullptr;    // T [wanted, D] the same in the last layer.
    float* embedded_sums = nullptr;     // [rows, D_e]; x where D_e is D.
    std::byte* embedded = nullptr;      // T [rows, D_e], where D_e is not D.
    std::byte* projected = nullptr;     // T [rows, 3D] or, with the mixer, [rows, D]; later what
                                        // linears give.
    std::byte* z = nullptr;             // T [rows, D] attention's output.
    std::byte* kept_z = nullptr;        // T [wanted, D] of it, in the last layer.
    std::byte* wide = nullptr;          // T [rows, F]
    std::byte* slice_input = nullptr;   // T [slices, D] slice embeddings.
    std::byte* slice_tokens = nullptr;  // T [slices, L D]; slice_pooling `linear`.
    std::byte* slice_qkv = nullptr;     // T [slices, 3D]
    std::byte* slice_z = nullptr;       // T [slices, D]
    float* mixed = nullptr;             // [slices, h, D]
    std::byte* partials = nullptr;      // Unfinished attention.
  };
  // On the device.
  struct Lists {
    Tokens tokens;
    DevicePlan token_plan, slice_plan;
    const kernels::cuda::SliceRows* slices = nullptr;
    const int32_t* slice_of_row = nullptr;   // [rows]; -1: padding.
    const int32_t* token_entries = nullptr;  // [rows] of the layers' token_bias.
    const int32_t* slice_entries = nullptr;  // [slices] of their slice_bias.
    const int32_t* wanted_rows = nullptr;
    // slice_pooling `linear`: visible rows and their places among slice_tokens; 0 or, of a slice
    // without visible rows, -1.
    const int32_t* pooled_rows = nullptr;
    const int32_t* pooled_places = nullptr;
    const int32_t* pool_entries = nullptr;
  };

  bool attends() const { return config_.mixer_size == 0; }
  bool has_input() const;
  bool pools_linearly() const { return config_.slice_pooling == CstPooling::kLinear; }
  int32_t slices() const { return static_cast<int32_t>(plan_.slice_rows()); }
  const DeviceCstLayer& LayerOf(int layer) const { return context_.weights->layers[layer]; }
  kernels::cuda::SpanCall HeadsCall(std::byte* qkv, std::byte* out) const;

  // Y_g and Y_l to z, in the model's order.
  void AttendLayer(int layer, const DeviceTimer& timer) const;
  // Y_l of `from` T [rows, D] to z. `from` may be z where tokens attend.
  void MixTokens(int layer, std::byte* from, const DeviceTimer& timer) const;
  void AttendTokens(int layer) const;
  void MixPlaces(int layer, std::byte* from) const;
  // S of `from`, and Y_g.
  void AttendSlices(int layer, std::byte* from, const DeviceTimer& timer) const;
  void Pool(const std::byte* from) const;
  void PoolLinearly(int layer, const std::byte* from) const;
  void AddPlaces(const DevicePlaceBias& bias, const int32_t* entries, int64_t rows,
                 std::byte* y) const;
  // to = `from` + the Y_g of each row's slice. They may be the same.
  void AddSlices(const std::byte* from, std::byte* to) const;
  void Finish(int layer) const;

  const Context& context_;
  const CstConfig& config_;
  const int64_t width_;
  const DeviceRows rows_;
  const CstPlan plan_;
  const int64_t wanted_;
  int64_t pooled_ = 0;  // Rows that slice_pooling `linear` reads.
  Lists lists_;
  Buffers buffers_;
};

}  // namespace longview::models
