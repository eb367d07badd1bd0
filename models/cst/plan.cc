#include "models/cst/plan.h"

#include <algorithm>
#include <span>

#include "kernels/span/full_planner.h"
#include "kernels/span/slice_planner.h"

namespace longview::models {
namespace {

kernels::SlicePattern TokenPattern(const CstConfig& config, int tile_rows) {
  kernels::SlicePattern pattern;
  pattern.heads = config.heads;
  pattern.slice = config.slice;
  pattern.extension = config.extension;
  pattern.positions = config.relative_keys();
  pattern.zero_boundary = config.zero_boundary && config.extension > 0;
  pattern.tile_rows = tile_rows;
  return pattern;
}

// Adds the document's slices; `row0` is its first row.
void AddSlices(const CstConfig& config, const EncoderSequence& sequence, int32_t row0,
               CstPlan& plan) {
  const int32_t tokens = sequence.tokens() - sequence.padding;
  for (int32_t at = 0; at < tokens; at += config.slice) {
    kernels::SliceRows slice = {row0 + at, std::min(config.slice, tokens - at), 0};
    for (int32_t t = at; t < at + slice.rows; ++t) slice.visible += sequence.roles[t] != 0;
    plan.slice_of_row.insert(plan.slice_of_row.end(), static_cast<size_t>(slice.rows),
                             static_cast<int32_t>(plan.slice_list.size()));
    plan.slice_list.push_back(slice);
    plan.slice_numbers.push_back(at / config.slice);
  }
  plan.slice_of_row.insert(plan.slice_of_row.end(), static_cast<size_t>(sequence.padding), -1);
}

}  // namespace

CstPlan PlanCst(const CstConfig& config, const RaggedBatch& batch, int tile_rows) {
  CstPlan plan;
  std::vector<kernels::SliceSequence> tokens;
  std::vector<kernels::FullSequence> slices;
  const std::vector<uint8_t> masked(static_cast<size_t>(batch.rows()), 0);
  for (int s = 0; s < batch.size(); ++s) {
    const EncoderSequence& sequence = *batch.sequences()[s];
    const int32_t row0 = batch.offsets()[s];
    const int32_t own = sequence.tokens() - sequence.padding;
    const auto slice0 = static_cast<int32_t>(plan.slice_list.size());
    AddSlices(config, sequence, row0, plan);
    const auto count = static_cast<int32_t>(plan.slice_list.size()) - slice0;
    const std::span<const uint8_t> roles(sequence.roles);
    tokens.push_back({row0, own, roles.first(static_cast<size_t>(own))});
    slices.push_back({slice0, count, slice0, count, {}, 0, 0});
    if (sequence.padding == 0) continue;
    tokens.push_back({row0 + own, sequence.padding,
                      std::span(masked).first(static_cast<size_t>(sequence.padding))});
  }
  std::vector<uint8_t> filled;
  for (const kernels::SliceRows& slice : plan.slice_list) filled.push_back(slice.visible > 0);
  if (config.mask_empty_slices) {
    for (kernels::FullSequence& sequence : slices) {
      sequence.visible = std::span(filled).subspan(static_cast<size_t>(sequence.key_row0),
                                                   static_cast<size_t>(sequence.keys));
    }
  }
  if (config.mixer_size == 0) plan.tokens = PlanSlices(TokenPattern(config, tile_rows), tokens);
  kernels::FullPattern full;
  full.heads = config.heads;
  full.tile_rows = tile_rows;
  plan.slices = PlanFull(full, slices);
  return plan;
}

}  // namespace longview::models
