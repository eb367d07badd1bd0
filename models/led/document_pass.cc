#include "models/led/document_pass.h"

namespace longview::models {

void DocumentKeys::Stage(Ops& ops) {
  rows_ref_ = ops.Stage(keys_.rows);
  places_ref_ = ops.StagePlaces(context_.decoder.documents, keys_.places);
}

void DocumentKeys::Take(Ops& ops) {
  const auto count = static_cast<int64_t>(keys_.rows.size());
  const int64_t width = context_.decoder.config->width;
  kept_ = ops.Take(count, width, RowType::kCompute, Ops::Tail::kPanel);
  products_ = ops.Take(count, 2 * width, RowType::kCompute, Ops::Tail::kWritten);
}

void DocumentKeys::Store(Ops& ops, const Rows& states) const {
  const StackConfig& config = *context_.decoder.config;
  const int64_t width = config.width;
  ops.Gather(states, rows_ref_, kept_);
  for (int layer = 0; layer < config.layers(); ++layer) {
    ops.Project(context_.weights->document[static_cast<size_t>(layer)], kept_, products_);
    ops.Store({context_.decoder.documents, 0, layer, config.heads}, products_.Columns(0, width),
              products_.Columns(width, width), places_ref_);
  }
}

LedDocumentPass::LedDocumentPass(const LedContext& context, Sequences document,
                                 const KeyRows& keys, bool brings_states)
    : context_(context),
      brings_states_(brings_states),
      encoder_(context.config->encoder, context.weights->encoder, context.decoder.compute,
               document, context.decoder.tile_rows),
      keys_(context, keys) {}

void LedDocumentPass::Stage(Ops& ops) {
  encoder_.Stage(ops);
  keys_.Stage(ops);
}

void LedDocumentPass::Take(Ops& ops) {
  encoder_.Take(ops);
  states_ = ops.Take(encoder_.Wanted().count, context_.decoder.config->width, RowType::kCompute);
  keys_.Take(ops);
}

void LedDocumentPass::Layer(Ops& ops, int layer) {
  if (layer < encoder_.layers()) return encoder_.Layer(ops, layer);
  ops.Narrow(encoder_.Wanted(), states_);
  keys_.Store(ops, states_);
}

}  // namespace longview::models
