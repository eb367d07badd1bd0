// Documents that go through a Transformer-LS text encoder on a device together: LsTextBatch's
// layers as work for one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "models/device/device_attention.h"
#include "models/device/device_rows.h"
#include "models/encoder/device_part.h"
#include "models/encoder/device_parts_family.h"
#include "models/transformer_ls_text/config.h"
#include "models/transformer_ls_text/device_weights.h"
#include "models/transformer_ls_text/plan.h"

namespace longview::models {

// Results are the wanted rows, then the class vectors. See DevicePart.
class DeviceLsTextPart final : public DeviceEncoderPart {
 public:
  using Context = DevicePartContext<LsTextConfig, DeviceLsTextWeights>;

  // REQUIRES: everything borrowed outlives it.
  DeviceLsTextPart(const Context& context, Sequences sequences);

  void Stage(StagedLists& lists) override;
  void Carve(Carver& carver) override;

  int layers() const override { return config_.layers; }
  void Embed() override;
  void RunLayer(int layer, const DeviceTimer& timer) override;
  void AddResults(DeviceResults& results) const override;

 private:
  struct LayerPlan {
    LsTextPlan host;
    DevicePlan tokens, class_rows;
  };
  // T is the compute type; what linears touch has kDevicePanelTail rows more.
  struct Buffers {
    float* x = nullptr;                 // [rows, d] residual stream.
    float* kept = nullptr;              // [kept rows, d] of it, in the last layer.
    std::byte* input = nullptr;         // T [rows, d] what a layer reads.
    std::byte* projected = nullptr;     // T [rows, 3d + h r], later what linears give.
    std::byte* keys = nullptr;          // T [rows, d] normed; in the last layer the kept rows of z.
    std::byte* values = nullptr;        // T [rows, d] normed
    std::byte* z = nullptr;             // T [rows, d] attention's output.
    std::byte* wide = nullptr;          // T [rows, f]
    float* scores = nullptr;            // [rows, h r] of the projection.
    kernels::cuda::PoolSums sums = {};  // Per piece and column.
    float* pooled_keys = nullptr;       // [sequences, h r, d / h]
    float* pooled_values = nullptr;     // The same.
    std::byte* landmarks = nullptr;     // T [projected rows, 2d]
    std::byte* partials = nullptr;      // Unfinished attention.
  };

  const LayerPlan& PlanOf(int layer) const { return plans_.at(config_.HasClass(layer)); }
  int64_t tokens() const { return batch().rows(); }
  bool has_class() const { return config_.cls != LsClass::kNone; }
  int64_t class_rows() const { return has_class() ? batch().size() : 0; }
  int64_t columns() const { return 3 * width_ + config_.columns(); }
  std::byte* At(std::byte* rows, int64_t elements) const;

  void EnterClassRows(int layer);
  void Project(int layer) const;
  void Pool(const void* values, float* out) const;
  void PlaceLandmarks(int layer) const;
  void Attend(int layer) const;
  void Finish(int layer) const;

  const Context& context_;
  const LsTextConfig& config_;
  const int64_t width_;
  const DeviceRows rows_;
  std::map<bool, LayerPlan> plans_;  // By has_class.
  int64_t kept_ = 0;                 // Rows of the last layer.
  int32_t pieces_ = 0;               // Of pooling.

  // On the device.
  Tokens tokens_;
  const int32_t* kept_rows_ = nullptr;  // [kept]
  const kernels::cuda::PoolPiece* piece_list_ = nullptr;
  const int32_t* piece0_ = nullptr;  // [sequences + 1]
  Buffers buffers_;
};

}  // namespace longview::models
