#include "models/stack/pass_layout.h"

#include "kernels/span/cross_planner.h"
#include "kernels/span/paged_planner.h"

namespace longview::models {
namespace {

using kernels::CacheStep;

kernels::Plan PlanWindow(const StackContext& context, int layer, const StackGroup& group,
                         const StackPassLayout& layout) {
  const bool dilated = context.tables->Of(layer).has_value();
  kernels::PagedPattern pattern;
  pattern.heads = context.config->heads;
  pattern.window = context.config->windows[static_cast<size_t>(layer)].span();
  pattern.fresh = group.group == CacheStep::kPrefill;
  pattern.window_table = dilated ? 0 : -1;
  pattern.tile_rows = context.tile_rows();
  std::vector<kernels::PagedSequence> batch;
  for (int i = group.run0; i < group.run0 + group.runs; ++i) {
    const StackRun& run = layout.runs[static_cast<size_t>(i)];
    kernels::PagedSequence& sequence = batch.emplace_back();
    sequence.query_row0 = sequence.fresh_row0 = static_cast<int32_t>(run.row0);
    sequence.tokens = static_cast<int32_t>(run.ids.size());
    sequence.start = static_cast<int32_t>(run.start);
  }
  kernels::Plan plan = PlanPaged(pattern, batch);
  for (kernels::Bias& bias : plan.biases) bias.kind = kernels::kAdded;
  return plan;
}

void PlanDocuments(const StackContext& context, StackPassLayout& layout) {
  std::vector<kernels::CrossDocument> batch;
  for (const StackRun& run : layout.runs) {
    const auto rows = static_cast<int32_t>(run.ids.size());
    if (!layout.documents.empty() && layout.documents.back() == run.document) {
      batch.back().queries += rows;
      continue;
    }
    layout.documents.push_back(run.document);
    batch.push_back({static_cast<int32_t>(run.row0), rows, run.document->count});
  }
  layout.cross = PlanCross(context.config->heads, context.tile_rows(), batch);
}

}  // namespace

StackPassLayout LayOutStackPass(const StackContext& context, std::vector<StackRun> runs) {
  StackPassLayout layout;
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    StackGroup& group = layout.groups[g];
    group.group = StackPassLayout::kOrder[g];
    group.run0 = static_cast<int>(layout.runs.size());
    group.row0 = layout.rows;
    for (StackRun& run : runs) {
      if (run.group != group.group) continue;
      run.row0 = layout.rows;
      layout.rows += static_cast<int64_t>(run.ids.size());
      layout.wanted += run.wanted;
      layout.runs.push_back(run);
    }
    group.runs = static_cast<int>(layout.runs.size()) - group.run0;
    group.rows = layout.rows - group.row0;
    for (int layer = 0; group.runs > 0 && layer < context.config->layers(); ++layer) {
      if (context.tables->PatternOf(layer) != layer) continue;
      group.plans.emplace(layer, PlanWindow(context, layer, group, layout));
    }
  }
  layout.panel_rows = layout.rows;
  layout.panel_wanted = layout.wanted;
  if (context.weights->few_rows()) {
    const StackGroup& decode = layout.groups[2];
    layout.panel_rows = decode.row0;
    for (int i = decode.run0; i < decode.run0 + decode.runs; ++i) {
      layout.panel_wanted -= layout.runs[static_cast<size_t>(i)].wanted;
    }
  }
  if (context.config->encoder) PlanDocuments(context, layout);
  return layout;
}

}  // namespace longview::models
