// A whole document through LED's encoder, then the keys and values that every decoder layer makes
// of it, as a forward.
#pragma once

#include "models/encoder/pass.h"
#include "models/led/document.h"
#include "models/longformer/pass.h"

namespace longview::models {

// Keys and values that every decoder layer makes of a document's last hidden states. Borrows all.
class DocumentKeys {
 public:
  DocumentKeys(const LedContext& context, const KeyRows& keys) : context_(context), keys_(keys) {}

  void Stage(Ops& ops);
  void Take(Ops& ops);
  // states: T [rows, H].
  void Store(Ops& ops, const Rows& states) const;

 private:
  const LedContext& context_;
  const KeyRows& keys_;
  IndexRef rows_ref_;
  PlacesRef places_ref_;
  Rows kept_;      // T [keys, H]
  Rows products_;  // T [keys, 2H], of one layer.
};

// Borrows all.
class LedDocumentPass final : public EncoderPass {
 public:
  // `document`: one sequence that wants all its rows. The last hidden states are rows to bring
  // back if `brings_states`.
  LedDocumentPass(const LedContext& context, Sequences document, const KeyRows& keys,
                  bool brings_states);

  int layers() const override { return encoder_.layers() + 1; }
  void Stage(Ops& ops) override;
  void Take(Ops& ops) override;
  void Embed(Ops& ops) override { encoder_.Embed(ops); }
  void Layer(Ops& ops, int layer) override;

  Rows Wanted() const override { return brings_states_ ? encoder_.Wanted() : Rows(); }
  int64_t FirstWanted(int place) const override { return encoder_.FirstWanted(place); }

  RaggedBatch& batch() override { return encoder_.batch(); }
  void LeaveDropped(int layer) override { encoder_.LeaveDropped(layer); }

 private:
  const LedContext& context_;
  const bool brings_states_;
  LongformerPass encoder_;
  DocumentKeys keys_;
  Rows states_;  // T [rows, H]
};

}  // namespace longview::models
