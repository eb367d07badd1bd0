// A document of a translation model: on its way through the encoder, then as what every decoder
// layer makes of it once. Per layer, from the rows P of the layer before (the encoder's last at
// first) and the encoder's last states X:
//
//   write rows  p W_pq                     of the causal attention (kernels/outer)
//   keys        pack(p, X) W_k, W_v        of the attention across, one per row of P
//   p           LN(p + pack(p, X))         for the next layer (pre-norm: LN(p) is packed, p added)
//
// None of it depends on the output, so that a token costs the same however long the document is.
// Forks of a sequence share it. Used by the executor's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cache/cache_budget.h"
#include "models/dense/scratch.h"
#include "models/dense/scratch_keeper.h"
#include "models/encoder/sequence.h"
#include "models/encoder/pass_batch.h"
#include "models/luna_decoder/context.h"

namespace longview::models {

class LunaDocument {
 public:
  // Borrows context and budget, which counts Bytes while it lives.
  LunaDocument(const LunaDecoderContext& context, const EncoderSequence& document,
               kernels::CacheBudget* budget);
  ~LunaDocument();
  LunaDocument(const LunaDocument&) = delete;
  LunaDocument& operator=(const LunaDocument&) = delete;

  // What is kept of it and what its reading holds, exact.
  static size_t Bytes(const LunaDecoderContext& context, const EncoderSequence& document);

  int tokens() const { return document_.tokens(); }
  int unencoded() const { return tokens() - read_; }

  // A step reads so many tokens more: their share of the work.
  void Begin(int tokens) { read_ += tokens; }
  // The next layer of that; returns whether work is left. Throws what LibTorch and the allocator
  // throw.
  bool Advance();

  // Once it is read: active rows of P, and what a decoder layer reads.
  int rows() const { return rows_; }
  const float* packed(int layer) const { return packed_[layer].data(); }
  // T [rows, 2d], keys and values side by side; tied [rows, d].
  const std::byte* keys(int layer) const { return keys_.data() + layer * layer_bytes_; }
  // [tokens, d], if rows of the document were wanted.
  std::span<const float> states() const { return states_; }

 private:
  struct Buffers;

  static Buffers Carve(const LunaDecoderContext& context, const EncoderSequence& document,
                       Carver& carver);
  int64_t done() const { return static_cast<int64_t>(encoded_) + crossed_; }
  int64_t work() const;
  void EndEncoder();
  void PrepareLayer();
  void Multiply(const DenseLayer& layer, const std::byte* input, int64_t rows, std::byte* out);

  const LunaDecoderContext& context_;
  EncoderSequence document_;  // Every row is wanted.
  kernels::CacheBudget* const budget_;
  const bool wants_states_;
  const int rows_;
  const int64_t layer_bytes_;  // Of keys.
  int read_ = 0;
  int encoded_ = 0, crossed_ = 0;  // Layers.
  ScratchKeeper keeper_{0};
  std::unique_ptr<HostPass> encoder_;  // While the encoder reads.
  Scratch scratch_;                    // While decoder layers are prepared.
  std::vector<float> states_;
  std::vector<std::vector<float>> packed_;
  std::vector<std::byte> keys_;
};

}  // namespace longview::models
