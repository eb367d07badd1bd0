#include "models/luna_decoder/document_pass.h"

#include "kernels/cuda/token/cache_rows.h"
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

void LunaDocumentPass::Stage(Ops& ops) {
  encoder_.Stage(ops);
  pack_ref_ = ops.Stage(pack_);
  keys_ref_ = ops.Stage(std::span<const kernels::StateRow>(keys_at_));
}

void LunaDocumentPass::Take(Ops& ops) {
  using enum RowType;
  using enum Ops::Tail;
  const int64_t keys = KeyParts(config_) * width();
  encoder_.Take(ops);
  source_ = ops.Take(tokens_, width(), kCompute, kPanel);
  p_raw_ = ops.Take(rows_, width(), kCompute, kPanel);
  p_input_ = pre_norm() ? ops.Take(rows_, width(), kCompute, kPanel) : p_raw_;
  written_ = ops.Take(rows_, width(), kFloat, kWritten);
  queries_ = ops.Take(rows_, width(), kCompute, kWritten);
  tensors_ = ops.Take(tokens_, keys, kCompute, kWritten);
  packed_ = ops.Take(rows_, width(), kCompute, kPanel);
  keys_ = ops.Take(rows_, keys, kCompute, kWritten);
}

void LunaDocumentPass::Pack(Ops& ops, const LunaCross& cross, const Rows& p) {
  ops.Narrow(p, p_raw_);
  if (pre_norm()) ops.Residual(p, {}, &cross.projected_norm, NormPlace::kPre, p_input_);
  ops.Project(cross.rows, p_raw_, written_);
  ops.Project(cross.pack_query, p_input_, queries_);
  ops.Project(cross.pack, source_, tensors_);
  const Rows keys = tensors_.Columns(0, width());
  const kernels::Source sources[] = {
      HeadsSource(ops.compute(), keys, config_.tied_kv ? keys : tensors_.Columns(width(), width()),
                  config_.cross_pack_heads)};
  kernels::Call call = HeadsCall(ops.compute(), queries_, packed_, config_.cross_pack_heads);
  call.sources = sources;
  ops.Attend(pack_ref_, call);
  ops.Project(cross.unpack, packed_, keys_);
}

void LunaDocumentPass::Prepare(Ops& ops, int layer) {
  const LunaCross& cross = *weights_.layers[static_cast<size_t>(layer)].cross;
  const Rows p = encoder_.Extra();
  Pack(ops, cross, p);
  const int64_t shift = kernels::cuda::StateShift(LunaDocumentShape(config_), layer);
  ops.PackOuter(written_, memory_.packed == nullptr ? nullptr : memory_.packed + shift);
  ops.StoreStates(keys_, keys_ref_, shift);
  ops.Residual(p, packed_, nullptr, NormPlace::kPost, {});
  if (!pre_norm()) ops.Residual(p, {}, &cross.projected_norm, NormPlace::kPost, {});
}

void LunaDocumentPass::Layer(Ops& ops, int layer) {
  if (layer < encoder_.layers()) return encoder_.Layer(ops, layer);
  const int prepared = layer - encoder_.layers();
  if (prepared == 0) ops.Narrow(encoder_.Wanted(), source_);
  Prepare(ops, prepared);
}

}  // namespace longview::models
