// Chunked attention of large maps: a block goes through them slice by slice, so that their
// projections never exist as a whole. The host's; a device has room for whole maps.
#include <cmath>

#include "models/ops/project.h"
#include "models/vil/pass.h"

namespace longview::models {

// The global tokens of a stage, as rows that see a map in slices.
OpenRowsShape VilPass::OpenGlobals(const VilStage& stage) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(stage.head_dim()));
  return {stage.globals, stage.heads, stage.width, scale};
}

// The image's global rows see rows [first, first + count) of qkv.
void VilPass::AppendGlobals(const At& at, int64_t first, int64_t count, OpenRowsBias bias) {
  const VilStage& config = *stages_[at.stage].config;
  const int64_t d = config.width;
  const Rows rows = stages_[at.stage].b.qkv.From(first).First(count);
  if (!config.relative_bias()) bias = {};
  at.backend.Run(
      ops::AppendOpenRows{open_, config.globals, rows.Columns(d, d), rows.Columns(2 * d, d), bias});
}

// Projects the tokens that the slice before has not; the rest moves to the front.
void VilPass::LoadSlice(const At& at, const VilBand& band) {
  const PlannedStage& stage = stages_[at.stage];
  const VilBlock& block = BlockOf(at.stage, at.block);
  const Buffers& b = stage.b;
  const int64_t g = stage.config->globals;
  const Rows locals = b.qkv.From(g);
  if (band.begin == 0) {
    load_end_ = 0;
    if (g > 0) {
      Norm(at, band.row0, g);
      at.backend.Run(ops::Project{block.qkv, b.normed.First(g), b.qkv.First(g)});
      at.backend.Run(ops::BeginOpenRows{open_, OpenGlobals(*stage.config), b.open, b.qkv.First(g)});
      AppendGlobals(at, 0, g, {block.bias.global.values(), g * g, g, 1});
    }
  } else if (locals.data != nullptr) {
    MoveRows(locals, band.load_begin - load_begin_, 0, load_end_ - band.load_begin);
  }
  const int64_t first = load_end_ - band.load_begin, count = band.load_end - load_end_;
  if (count > 0) {
    Norm(at, band.row0 + g + load_end_, count);
    at.backend.Run(ops::Project{block.qkv, b.normed.First(count), locals.From(first).First(count)});
    if (g > 0) AppendGlobals(at, g + first, count, {block.bias.mixed.values(), 2 * g, 1, 0});
  }
  load_begin_ = band.load_begin;
  load_end_ = band.load_end;
}

// Rows of x below the slice are still those that this block began with.
void VilPass::RunSlice(const At& at, size_t index) {
  const PlannedStage& stage = stages_[at.stage];
  const VilBand& band = stage.plan.bands[index];
  const VilBlock& block = BlockOf(at.stage, at.block);
  const int64_t g = stage.config->globals;
  LoadSlice(at, band);
  AttendSpans(at, stage.bands[index].attention, stage.bands[index].biases, false);
  FeedForward(at, block.out, band.row0 + g + band.begin, band.end - band.begin,
              stage.b.normed.From(g + band.begin - band.load_begin));
  if (g == 0 || band.end < stage.plan.images[static_cast<size_t>(band.image)].count()) return;
  at.backend.Run(ops::FinishOpenRows{open_, stage.b.normed.First(g)});
  FeedForward(at, block.out, band.row0, g, stage.b.normed);
}

}  // namespace longview::models
