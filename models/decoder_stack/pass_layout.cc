#include "models/decoder_stack/pass_layout.h"

#include <utility>

#include "kernels/span/cross_planner.h"
#include "kernels/span/paged_planner.h"
#include "models/generation/passes/document_sequence.h"

namespace longview::models {
namespace {

using kernels::CacheStep;

kernels::Plan PlanWindow(const StackContext& context, int layer, const StackGroup& group,
                         const StackPassLayout& layout) {
  const bool dilated = context.weights->distances.Of(layer).has_value();
  kernels::PagedPattern pattern;
  pattern.heads = context.config->heads;
  pattern.window = context.config->windows[static_cast<size_t>(layer)].span();
  pattern.fresh = group.group == CacheStep::kPrefill;
  pattern.window_table = dilated ? 0 : -1;
  pattern.tile_rows = context.frame.tile_rows;
  std::vector<kernels::PagedSequence> batch;
  for (int i = group.run0; i < group.run0 + group.runs; ++i) {
    const TokenRun& run = layout.runs[static_cast<size_t>(i)];
    kernels::PagedSequence& sequence = batch.emplace_back();
    sequence.query_row0 = sequence.fresh_row0 = static_cast<int32_t>(run.row0);
    sequence.tokens = static_cast<int32_t>(run.rows());
    sequence.start = static_cast<int32_t>(run.start);
  }
  kernels::Plan plan = PlanPaged(pattern, batch);
  for (kernels::Bias& bias : plan.biases) bias.kind = kernels::kAdded;
  return plan;
}

StackDocument DocumentOfRun(const StackContext& context, const TokenRun& run) {
  const PassDocument* document = DocumentOf(run);
  if (document == nullptr) return {nullptr, context.longest_document};
  return {&document->kept(), static_cast<int32_t>(document->kept().tokens())};
}

void PlanDocuments(const StackContext& context, StackPassLayout& layout) {
  std::vector<kernels::CrossDocument> batch;
  for (const TokenRun& run : layout.runs) {
    const auto rows = static_cast<int32_t>(run.rows());
    const StackDocument document = DocumentOfRun(context, run);
    if (document.keys != nullptr && !batch.empty() &&
        layout.documents.back().keys == document.keys) {
      batch.back().queries += rows;
      continue;
    }
    layout.documents.push_back(document);
    batch.push_back({static_cast<int32_t>(run.row0), rows, document.count});
  }
  layout.cross = PlanCross(context.config->heads, context.frame.tile_rows, batch);
}

}  // namespace

StackPassLayout LayOutStackPass(const StackContext& context, std::vector<TokenRun> runs) {
  StackPassLayout layout;
  layout.runs = std::move(runs);
  layout.wanted = layout.many_wanted = WantedRows(layout.runs);
  const std::array<RunGroup, 3> groups = SortRuns(layout.runs);
  for (size_t g = 0; g < groups.size(); ++g) {
    StackGroup& group = layout.groups[g];
    static_cast<RunGroup&>(group) = groups[g];
    layout.rows += group.rows;
    for (int layer = 0; group.runs > 0 && layer < context.config->layers(); ++layer) {
      if (context.weights->distances.PatternOf(layer) != layer) continue;
      group.plans.emplace(layer, PlanWindow(context, layer, group, layout));
    }
  }
  layout.many_rows = layout.rows;
  if (context.weights->few_rows()) {
    const StackGroup& decode = layout.groups[2];
    layout.many_rows = decode.row0;
    layout.many_wanted = WantedRows(std::span(layout.runs).first(static_cast<size_t>(decode.run0)));
  }
  if (context.config->encoder) PlanDocuments(context, layout);
  return layout;
}

}  // namespace longview::models
