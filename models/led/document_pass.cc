#include "models/led/document_pass.h"

#include <algorithm>

#include "models/ops/cache_rows.h"
#include "models/ops/host_backend.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"
#include "models/ops/residual.h"

namespace longview::models {

using kernels::kBlockSlots;

int VisibleTokens(const EncoderSequence& document) {
  return document.tokens() -
         static_cast<int>(std::ranges::count(document.roles, kernels::kMaskedToken));
}

DocumentKeys::DocumentKeys(const LedConfig& config, const LedWeights& weights,
                           const TokenFrame& frame, const EncoderSequence& document,
                           const kernels::CacheSequence* kept, int64_t first, int64_t count)
    : config_(config.decoder), weights_(weights.document), cache_(frame.documents) {
  const auto masked = [&](int64_t t) {
    return document.roles[static_cast<size_t>(t)] == kernels::kMaskedToken;
  };
  for (int64_t i = 0; i < count; ++i) {
    if (!masked(first + i)) rows_.push_back(static_cast<int32_t>(i));
  }
  places_.resize(rows_.size());
  if (kept == nullptr) return;
  const auto begin = document.roles.begin();
  int64_t slot = first - std::count(begin, begin + first, kernels::kMaskedToken);
  for (kernels::CachePlace& place : places_) {
    place = {kept->blocks(0).blocks[static_cast<size_t>(slot / kBlockSlots)],
             static_cast<int32_t>(slot % kBlockSlots)};
    ++slot;
  }
}

void DocumentKeys::Stage(Backend& backend) {
  rows_ref_ = backend.Stage(rows_);
  places_ref_ = StagePlaces(backend, cache_, places_);
}

void DocumentKeys::Take(Backend& backend) {
  const auto count = static_cast<int64_t>(rows_.size());
  const int64_t width = config_.width;
  kept_ = backend.Take(count, width, RowType::kCompute, Backend::Tail::kPanel);
  products_ = backend.Take(count, 2 * width, RowType::kCompute, Backend::Tail::kWritten);
}

void DocumentKeys::Store(Backend& backend, const Rows& states) const {
  const int64_t width = config_.width;
  backend.Run(ops::Gather{states, rows_ref_, kept_});
  for (int layer = 0; layer < config_.layers(); ++layer) {
    backend.Run(ops::Project{weights_[static_cast<size_t>(layer)], kept_, products_});
    backend.Run(ops::Store{{cache_, 0, layer, config_.heads},
                           products_.Columns(0, width),
                           products_.Columns(width, width),
                           places_ref_});
  }
}

LedDocumentPass::LedDocumentPass(const LedConfig& config, const LedWeights& weights,
                                 const TokenFrame& frame, Sequences document,
                                 const kernels::CacheSequence* kept, bool brings_states)
    : brings_states_(brings_states),
      encoder_(config.encoder, weights.encoder, frame.compute, document, frame.tile_rows),
      keys_(config, weights, frame, *document[0], kept, 0, document[0]->tokens()) {}

void LedDocumentPass::Stage(Backend& backend) {
  encoder_.Stage(backend);
  keys_.Stage(backend);
}

void LedDocumentPass::Take(Backend& backend) {
  encoder_.Take(backend);
  const Rows wanted = encoder_.Wanted();
  states_ = backend.Take(wanted.count, wanted.width, RowType::kCompute);
  keys_.Take(backend);
}

void LedDocumentPass::Layer(Backend& backend, int layer) {
  if (layer < encoder_.layers()) return encoder_.Layer(backend, layer);
  backend.Run(ops::Narrow{encoder_.Wanted(), states_});
  keys_.Store(backend, states_);
}

LedReader::LedReader(const LedConfig& config, const LedWeights& weights, const SourceReading& what)
    : config_(config),
      weights_(weights),
      what_(what),
      context_(config.encoder, weights.encoder, what.host.compute, *what.host.pool),
      encoder_(context_, what.document, *this, what.scratch, what.times) {}

int64_t LedReader::held_bytes() const {
  return static_cast<int64_t>(PiecewiseEncoder::HeldBytes(context_, what_.document));
}

SourceNeed LedReader::NeedOf(const LedConfig& config, const LedWeights& weights,
                             const ComputeContext& host, const EncoderSequence& document) {
  const LongformerContext context(config.encoder, weights.encoder, host.compute, *host.pool);
  HostBackend count(host);
  DocumentKeys keys(config, weights, {}, document, nullptr, 0, document.tokens());
  keys.Stage(count);
  keys.Take(count);
  // Two results of one panel are alive at a time: the expanded one and what follows it.
  const int64_t width = config.decoder.width;
  const int64_t widest = std::max<int64_t>(3 * width, config.encoder.intermediate) + width;
  const size_t piece =
      std::max(PiecewiseEncoder::PieceBytes(context, document), count.need().memory());
  return {static_cast<int64_t>(PiecewiseEncoder::HeldBytes(context, document)),
          static_cast<int64_t>(piece) + kPanelRows * widest * ElementBytes(host.compute)};
}

double LedReader::LinearWork() const {
  const StackConfig& config = config_.decoder;
  return 2.0 * config.layers() * config.width * config.width;
}

void LedReader::Take(int64_t first, int64_t count, const float* x, const std::byte* input) {
  const int64_t width = config_.decoder.width;
  if (what_.states != nullptr) std::copy_n(x, count * width, what_.states + first * width);
  DocumentKeys keys(config_, weights_, what_.frame, what_.document, &what_.kept, first, count);
  if (keys.empty()) return;
  Rows rows;
  rows.data = const_cast<std::byte*>(input);
  rows.count = count;
  rows.width = rows.stride = width;
  rows.element = ElementBytes(context_.compute);
  const auto store = [&](Backend& backend) {
    keys.Stage(backend);
    keys.Take(backend);
    keys.Store(backend, rows);
  };
  HostBackend counted(context_);
  store(counted);
  const ScratchLease lease(what_.scratch, counted.need().memory());
  HostBackend backend(context_, counted.need(), lease.data(), what_.times);
  store(backend);
}

}  // namespace longview::models
