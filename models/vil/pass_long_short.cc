// ViL-LS: blocks whose tokens attend by long-short attention (long_short/map_plan.h).
#include "models/ops/long_short.h"
#include "models/ops/project.h"
#include "models/vil/pass.h"

namespace longview::models {

void VilPass::RunLongShort(const At& at, size_t index) {
  const PlannedStage& stage = stages_[at.stage];
  const LongShortBand& band = stage.plan.long_short[index];
  const VilBlock& block = BlockOf(at.stage, at.block);
  const LongShortMemory& memory = stage.b.long_short;
  std::vector<kernels::Table> tables;
  if (stage.pattern.bias) {
    at.backend.Run(ops::AddBiases{stage.bands[index].biases, block.bias.local, at.block,
                                  stage.b.bias, tables});
  }
  if (band.is_large()) {
    AttendSlices(at, band, tables);
    return FeedForward(at, block.out, band.row0, band.rows, memory.outputs);
  }
  if (at.block == 0 || !alone(stage)) Norm(at, band.row0, band.rows);
  ProjectTokens(at, band.rows, memory.rows);
  if (Has(block.landmarks)) {
    at.backend.Run(ops::Project{block.landmarks, memory.normed.First(band.rows),
                                memory.rows.scores.First(band.rows)});
  }
  AttendLongShort(at.backend, stage.pattern, stage.bands[index].long_short, band.rows, memory,
                  &block.landmark_norm, tables);
  FeedForward(at, block.out, band.row0, band.rows, memory.normed);
}

// Projects the first rows of LN(x): q as it is, k and v normalised, and, where one weight has them,
// landmarks' scores.
void VilPass::ProjectTokens(const At& at, int64_t count, LongShortRows rows) const {
  const VilBlock& block = BlockOf(at.stage, at.block);
  for (Rows* part : {&rows.q, &rows.keys, &rows.values, &rows.scores}) *part = part->First(count);
  if (block.qkv.out == 3 * rows.q.width) rows.scores = {};
  at.backend.Run(ops::ProjectLongShort{block.qkv, block.token_norm,
                                       NormedRows(stages_[at.stage]).First(count), count, rows});
}

// x changes once all outputs are there.
struct VilPass::LargeRows final : LargeMapRows {
  LargeRows(const VilPass& pass, const At& at, const LongShortBand& band,
            const std::vector<kernels::Table>& tables)
      : pass(pass),
        at(at),
        memory(pass.stages_[at.stage].b.long_short),
        local0(band.row0 + pass.stages_[at.stage].config->globals),
        tables(tables) {}

  void Score(int64_t begin, int64_t end) const override {
    pass.Norm(at, local0 + begin, end - begin);
    at.backend.Run(ops::Project{pass.BlockOf(at.stage, at.block).landmarks,
                                memory.normed.First(end - begin),
                                memory.scores.From(begin).First(end - begin)});
  }
  void Project(int64_t begin, int64_t end, bool, std::byte* to) const override {
    ProjectRows(local0 + begin, end - begin, to);
  }
  void ProjectClass(std::byte* to) const override {
    const int64_t g = pass.stages_[at.stage].config->globals;
    ProjectRows(local0 - g, g, to);
  }
  std::vector<kernels::Table> Tables(size_t shape) const override {
    if (tables.empty()) return {};
    return {tables[shape]};
  }

  void ProjectRows(int64_t first, int64_t count, std::byte* to) const {
    pass.Norm(at, first, count);
    pass.ProjectTokens(at, count, SideBySide(memory.normed, count, to));
  }

  const VilPass& pass;
  const At& at;
  const LongShortMemory& memory;
  const int64_t local0;
  const std::vector<kernels::Table>& tables;  // By shape; empty without.
};

void VilPass::AttendSlices(const At& at, const LongShortBand& band,
                           const std::vector<kernels::Table>& tables) {
  const PlannedStage& stage = stages_[at.stage];
  const LargeRows rows(*this, at, band, tables);
  at.backend.Run(LargeMapOf(stage.pattern, band, stage.b.long_short,
                            &BlockOf(at.stage, at.block).landmark_norm, rows));
}

}  // namespace longview::models
