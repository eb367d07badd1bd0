// Vision Longformer and ViL-LS over a ragged batch: block pairs of attention and MLP, each with
// its LayerNorm in front and a plain residual (spec: Z + Attn(LN(Z)), Z + MLP(LN(Z))). ViL-LS
// attends by long_short/ in place of chunks.
//
// Rows go through a block in bands (stage_plan.h): all of them at once, or on the host large maps
// slice by slice, so that their projections never exist as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/ops/long_short.h"
#include "models/vil/bias_tables.h"
#include "models/vil/open_globals.h"
#include "models/vil/reduce_maps.h"
#include "models/vil/stage_plan.h"
#include "models/vision/long_short_map.h"
#include "models/vision/staged_pass.h"

namespace longview::models {

class VilPass final : public StagedPass {
 public:
  // Borrows the context. `measure`: biases and positions are made only where a device asks for
  // them.
  VilPass(const VilContext& context, std::span<const VisionPicture> pictures, bool measure);

 private:
  // The memory of a stage's blocks. "T" is an element of the compute type; "band" are the rows of
  // the largest band.
  struct Buffers {
    Rows normed;                      // T [band, d] LN(x); then attention's output.
    Rows qkv;                         // T [band, 3d]; spatial reduction: [band, d]
    Rows global_inputs, global_outs;  // T [globals, d], separate global projections only.
    Rows global_q;                    // T [rows, d] of global rows.
    Rows global_kv;                   // T [rows, 2d]
    Rows keys;                        // [projected keys, 2d] sums.
    LongShortMemory long_short;       // In place of all the above.
    OpenRowsBuffers open;             // Sums of global rows that see slices.
    float* bias = nullptr;            // Expanded tables, on a device.
  };
  // Plans and lists of a band.
  struct Band {
    PlanRef attention;
    LongShortLists long_short;
    std::vector<MapBias> maps;
    BiasRef biases;
    std::shared_ptr<const VilPlan> joined;
  };
  struct PlannedStage {
    const VilStage* config = nullptr;
    LongShortPattern pattern;
    VilStagePlan plan;
    std::vector<Band> bands;  // One per band of `plan` (chunked or long-short).
    PlanRef globals;
    IndexRef offsets;
    MapReduction reduction;
    ReductionRef reduction_ref;
    Buffers b;
  };
  // A block that runs.
  struct At {
    Backend& backend;
    size_t stage;
    int block;
  };
  struct LargeRows;

  EmbedWeights EmbedOf(size_t stage) const override;
  void StageLists(Backend& backend, size_t stage) override;
  void CarveStage(Backend& backend, size_t stage, Carver& carver) override;
  void RunBlock(Backend& backend, size_t stage, int block) override;

  void ListBiases(size_t stage);
  VilMapEntry PlacesOf(size_t stage, ImageSize map);

  // LN(x) of rows [first, first + count) of the batch, to the front of normed.
  void Norm(const At& at, int64_t first, int64_t count) const;
  void RunWhole(const At& at, size_t band);
  void ProjectGlobals(const At& at) const;
  void Attend(const At& at, size_t band);
  void AttendSpans(const At& at, PlanRef plan, const BiasRef& biases, bool separate_globals) const;
  void Finish(const At& at, size_t band) const;
  // The part behind attention of `count` rows of the batch from `first` on; `z` is its output.
  void FeedForward(const At& at, const Weight& out, int64_t first, int64_t count,
                   const Rows& z) const;

  static OpenRowsShape OpenGlobals(const VilStage& stage);
  void RunSlice(const At& at, size_t band);
  void LoadSlice(const At& at, const VilBand& band);
  void AppendGlobals(const At& at, int64_t first, int64_t count, OpenRowsBias bias);

  void RunLongShort(const At& at, size_t band);
  void ProjectTokens(const At& at, int64_t count, LongShortRows rows) const;
  void AttendSlices(const At& at, const LongShortBand& band,
                    const std::vector<kernels::Table>& tables);

  const VilBlock& BlockOf(size_t stage, int block) const;
  static const Rows& NormedRows(const PlannedStage& stage) {
    return stage.plan.long_short.empty() ? stage.b.normed : stage.b.long_short.normed;
  }
  // Whether a stage's rows go through its blocks as one band: then LN(x) is left for the next.
  bool alone(const PlannedStage& stage) const;
  bool separates_globals(const PlannedStage& stage) const { return !stage.plan.globals.empty(); }

  const VilContext& context_;
  std::vector<PlannedStage> stages_;
  std::vector<VilMapEntry> kept_;          // Made for a device's lists.
  int64_t load_begin_ = 0, load_end_ = 0;  // Tokens of the sliced image that lie in qkv.
  std::optional<OpenRows> open_;           // Global rows of that image.
};

}  // namespace longview::models
