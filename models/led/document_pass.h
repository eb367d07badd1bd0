// A document through LED's encoder, then the keys and values that every decoder layer makes of it:
// as a forward, and for the host in pieces.
//
// Masked tokens are left out of keys and values: attention to a document has no positions, so
// nobody misses them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "models/encoder/pass.h"
#include "models/generation/passes/source_model.h"
#include "models/led/config.h"
#include "models/led/weights.h"
#include "models/longformer/pass.h"
#include "models/longformer/piecewise_encoder.h"
#include "models/ops/cache_rows.h"

namespace longview::models {

// Tokens of the document that have keys.
int VisibleTokens(const EncoderSequence& document);

// Keys and values that every decoder layer makes of rows of last hidden states. Borrows weights and
// cache.
class DocumentKeys {
 public:
  // Keys of tokens first .. first + count - 1, rows counted from the first. `kept`: the document's
  // part of frame.documents; null: they are counted.
  DocumentKeys(const LedConfig& config, const LedWeights& weights, const TokenFrame& frame,
               const EncoderSequence& document, const kernels::CacheSequence* kept, int64_t first,
               int64_t count);

  bool empty() const { return rows_.empty(); }
  void Stage(Backend& backend);
  void Take(Backend& backend);
  // states: T [rows, H].
  void Store(Backend& backend, const Rows& states) const;

 private:
  const StackConfig& config_;
  const std::vector<Weight>& weights_;  // By layer.
  const kernels::ProjectionCache* const cache_;
  std::vector<int32_t> rows_;                // Tokens that have keys.
  std::vector<kernels::CachePlace> places_;  // Places of these in the cache.
  IndexRef rows_ref_;
  PlacesRef places_ref_;
  Rows kept_;      // T [keys, H]
  Rows products_;  // T [keys, 2H], of one layer.
};

class LedDocumentPass final : public EncoderPass {
 public:
  // Implements SourceModel::Forward. Borrows config and weights.
  LedDocumentPass(const LedConfig& config, const LedWeights& weights, const TokenFrame& frame,
                  Sequences document, const kernels::CacheSequence* kept, bool brings_states);

  int layers() const override { return encoder_.layers() + 1; }
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override { encoder_.Embed(backend); }
  void Layer(Backend& backend, int layer) override;

  Rows Wanted() const override { return brings_states_ ? encoder_.Wanted() : Rows(); }
  int64_t FirstWanted(int place) const override { return encoder_.FirstWanted(place); }

  RaggedBatch& batch() override { return encoder_.batch(); }
  void LeaveDropped(int layer) override { encoder_.LeaveDropped(layer); }

 private:
  const bool brings_states_;
  LongformerPass encoder_;
  DocumentKeys keys_;
  Rows states_;  // T [rows, H]
};

// Reads a document in pieces of rows, so that a long one never holds up others for longer than a
// step.
class LedReader final : public SourceReader, private EncodedRows {
 public:
  // Borrows all.
  LedReader(const LedConfig& config, const LedWeights& weights, const SourceReading& what);

  // Implements SourceModel::HostNeed.
  static SourceNeed NeedOf(const LedConfig& config, const LedWeights& weights,
                           const ComputeContext& host, const EncoderSequence& document);

  int64_t held_bytes() const override;
  bool Advance(int read) override { return encoder_.Advance(encoder_.RowsUntil(read)); }

 private:
  void Take(int64_t first, int64_t count, const float* x, const std::byte* input) override;
  double LinearWork() const override;

  const LedConfig& config_;
  const LedWeights& weights_;
  const SourceReading what_;
  const LongformerContext context_;
  PiecewiseEncoder encoder_;
};

}  // namespace longview::models
