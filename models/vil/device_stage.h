// The host's side of one stage of a batch on a device: who attends to whom, and the lists of rows
// that kernels read. Made once per batch, read by every block of the stage.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/pool/pool_api.h"
#include "kernels/cuda/vision/maps_api.h"
#include "models/device/device_attention.h"
#include "models/device/staged_lists.h"
#include "models/vil/stage_plan.h"
#include "models/vision/family.h"

namespace longview::models {

// Biases between local tokens of one map size: entries [first, first + count) of the stage's joined
// table.
struct DeviceMapBias {
  int64_t first = 0;
  int64_t count = 0;
  const int32_t* entries = nullptr;  // On the device, [count] rows of the learned table.
  // By block, on the device, the learned table [heads, learned_entries] interpolated for this size;
  // empty where the block's own is read.
  std::vector<const float*> learned;
  int64_t learned_entries = 0;
};

// What kernels read, on the device.
struct DeviceVilLists {
  // Of the first stage: all pictures and where their patches are. Of others: the rows of the stage
  // before that a token's patch is made of, [tokens, patch * patch].
  const float* pixels = nullptr;
  const kernels::cuda::PixelImage* pictures = nullptr;
  const int32_t* taps = nullptr;
  const int32_t* rows = nullptr;    // [tokens], row-major over the maps, image after image.
  const int32_t* begins = nullptr;  // [images + 1] rows
  const float* down = nullptr;      // Positions of all map sizes; null without.
  const float* across = nullptr;
  const int32_t* down_rows = nullptr;    // [tokens]
  const int32_t* across_rows = nullptr;  // [tokens]
  const int32_t* globals = nullptr;      // [images * g] rows
  const int32_t* class_rows = nullptr;   // [images * g] rows of the class tokens
  // Spatial reduction: rows that a reduced place is made of, [places, f * f]; first places by image
  // [images + 1]; the keys that they and the global tokens become, [images] and [images * g].
  const int32_t* reduced_from = nullptr;
  const int32_t* reduced_begins = nullptr;
  const int32_t* reduced_keys = nullptr;
  const int32_t* global_keys = nullptr;
  // Long-short attention: which rows landmarks are made of, [rows], and the pieces they are pooled
  // in, by image [images + 1].
  const uint8_t* in_map = nullptr;
  const kernels::cuda::PoolPiece* pieces = nullptr;
  const int32_t* piece0 = nullptr;
};

class DeviceVilStage {
 public:
  // `maps` of the batch's images. Plans come from the context's cache; weights are not read before
  // lists are written.
  DeviceVilStage(const VilContext& context, size_t index, std::span<const ImageSize> maps);

  // Writes lists and plans; what the members below name is valid once they are copied. `before`:
  // the stage before, else null and `inputs` the pictures. Over no memory pictures are not read.
  void Stage(const DeviceVilStage* before, std::span<const ImageSize> sizes,
             std::span<const PixelValues* const> pictures, StagedLists& lists);

  const VilStagePlan& plan() const { return plan_; }
  const VilStage& stage() const { return stage_; }
  const DeviceVilLists& lists() const { return lists_; }
  // Of all rows but those of the next: global rows with projections of their own, class rows of
  // long-short attention.
  const DevicePlan& attention() const { return attention_; }
  const DevicePlan& global_attention() const { return global_attention_; }
  bool separates_globals() const { return !plan_.globals.empty(); }
  bool is_long_short() const { return stage_.attention == VilAttention::kLongShort; }
  std::span<const DeviceMapBias> biases() const { return biases_; }
  int sources() const;

  int images() const { return static_cast<int>(plan_.images.size()); }
  int64_t tokens() const { return plan_.rows - globals(); }
  int64_t globals() const { return int64_t{images()} * stage_.globals; }
  int64_t most_tokens() const;   // Of an image.
  int64_t bias_entries() const;  // Of the joined table.
  int64_t reduced_places() const { return plan_.keys - globals(); }
  int32_t pieces() const { return pieces_; }

 private:
  void PlanLocal(std::span<const ImageSize> maps);
  void PlanBiases();
  // Whether biases of such maps are made of a table that was learned for another size.
  bool Interpolates(ImageSize map) const;
  VilMapEntry PlacesOf(const ImageSize& map) const;
  void StagePictures(std::span<const ImageSize> sizes, std::span<const PixelValues* const> pictures,
                     StagedLists& lists);
  void StageTaps(const DeviceVilStage& before, StagedLists& lists);
  void StageRows(StagedLists& lists);
  void StagePositions(StagedLists& lists);
  void StageBiases(StagedLists& lists);
  void StageReduction(StagedLists& lists);
  void StageLandmarks(StagedLists& lists);

  const VilContext& context_;
  const size_t index_;
  const VilStage& stage_;
  const VilStagePlan plan_;
  std::shared_ptr<const VilPlan> local_;  // Null: no spans.
  int32_t pieces_ = 0;
  std::vector<ImageSize> sizes_;  // Of maps, each once.
  DeviceVilLists lists_;
  DevicePlan attention_, global_attention_;
  std::vector<DeviceMapBias> biases_;
};

}  // namespace longview::models
