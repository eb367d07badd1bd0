#include "models/luna_decoder/document_pass.h"

#include "models/luna_decoder/append_outer.h"
#include "models/ops/attend.h"
#include "models/ops/project.h"
#include "models/ops/residual.h"
#include "models/ops/states.h"

#include "kernels/cuda/device_blocks.h"
#include "kernels/span/full_planner.h"

namespace longview::models {

LunaDocumentPass::LunaDocumentPass(const LunaDecoderConfig& config,
                                   const LunaDecoderWeights& weights, const LunaWeights& encoder,
                                   const TokenFrame& frame, Sequences document,
                                   const LunaDocumentMemory& memory, bool brings_states)
    : config_(config),
      weights_(weights),
      memory_(memory),
      brings_states_(brings_states),
      encoder_(*config_.encoder, encoder, frame.compute, document, frame.tile_rows),
      tokens_(document[0]->tokens()),
      rows_(ActiveRows(*config_.encoder, *document[0])) {
  kernels::FullPattern pattern;
  pattern.heads = config_.cross_pack_heads;
  pattern.split = true;
  pattern.tile_rows = frame.tile_rows;
  const kernels::FullSequence one = {0, static_cast<int32_t>(rows_), 0,
                                     static_cast<int32_t>(tokens_), document[0]->roles};
  pack_ = PlanFull(pattern, {&one, 1});
  for (int64_t row = 0; row < rows_; ++row) {
    float* const at =
        memory.keys == nullptr ? nullptr : memory.keys + row * KeyParts(config_) * width();
    keys_at_.push_back({at, static_cast<int32_t>(row)});
  }
}

void LunaDocumentPass::Stage(Backend& backend) {
  encoder_.Stage(backend);
  pack_ref_ = backend.Stage(pack_);
  keys_ref_ = StageStates(backend, keys_at_);
}

void LunaDocumentPass::Take(Backend& backend) {
  using enum RowType;
  using enum Backend::Tail;
  const int64_t keys = KeyParts(config_) * width();
  encoder_.Take(backend);
  source_ = backend.Take(tokens_, width(), kCompute, kPanel);
  p_raw_ = backend.Take(rows_, width(), kCompute, kPanel);
  p_input_ = pre_norm() ? backend.Take(rows_, width(), kCompute, kPanel) : p_raw_;
  written_ = backend.Take(rows_, width(), kFloat, kWritten);
  queries_ = backend.Take(rows_, width(), kCompute, kWritten);
  tensors_ = backend.Take(tokens_, keys, kCompute, kWritten);
  packed_ = backend.Take(rows_, width(), kCompute, kPanel);
  keys_ = backend.Take(rows_, keys, kCompute, kWritten);
}

void LunaDocumentPass::Pack(Backend& backend, const LunaCross& cross, const Rows& p) {
  backend.Run(ops::Narrow{p, p_raw_});
  if (pre_norm())
    backend.Run(ops::Residual{p, {}, &cross.projected_norm, NormPlace::kPre, p_input_});
  backend.Run(ops::Project{cross.rows, p_raw_, written_});
  backend.Run(ops::Project{cross.pack_query, p_input_, queries_});
  backend.Run(ops::Project{cross.pack, source_, tensors_});
  const Rows keys = tensors_.Columns(0, width());
  const kernels::Source sources[] = {HeadsSource(
      backend.compute(), keys, config_.tied_kv ? keys : tensors_.Columns(width(), width()),
      config_.cross_pack_heads)};
  kernels::Call call = HeadsCall(backend.compute(), queries_, packed_, config_.cross_pack_heads);
  call.sources = sources;
  backend.Run(ops::Attend{pack_ref_, call});
  backend.Run(ops::Project{cross.unpack, packed_, keys_});
}

void LunaDocumentPass::Prepare(Backend& backend, int layer) {
  const LunaCross& cross = *weights_.layers[static_cast<size_t>(layer)].cross;
  const Rows p = encoder_.Extra();
  Pack(backend, cross, p);
  const int64_t shift = kernels::cuda::StateShift(LunaDocumentShape(config_), layer);
  backend.Run(
      ops::PackOuter{written_, memory_.packed == nullptr ? nullptr : memory_.packed + shift});
  backend.Run(ops::StoreStates{keys_, keys_ref_, shift});
  backend.Run(ops::Residual{p, packed_, nullptr, NormPlace::kPost, {}});
  if (!pre_norm()) backend.Run(ops::Residual{p, {}, &cross.projected_norm, NormPlace::kPost, {}});
}

void LunaDocumentPass::Layer(Backend& backend, int layer) {
  if (layer < encoder_.layers()) return encoder_.Layer(backend, layer);
  const int prepared = layer - encoder_.layers();
  if (prepared == 0) backend.Run(ops::Narrow{encoder_.Wanted(), source_});
  Prepare(backend, prepared);
}

}  // namespace longview::models
