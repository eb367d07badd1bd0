// A stack of post-norm decoder layers over a cache of keys and values: what LED's decoder and the
// autoregressive Longformer are made of.
//
//   x = LN(word + position + type)
//   x = LN(x + Wo attend(x));  with an encoder: x = LN(x + Wo' attend(document));
//   x = LN(x + W2 act(W1 x))
//   logits = W x + b, Longformer's head before: x = LN(gelu(Wd x))
//
// Self-attention is causal: all earlier tokens, or a window of them, dilated per head.
// Plain values, constant after load.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cache/cache_shape.h"
#include "models/decoder_stack/distance_tables.h"
#include "models/ops/weight.h"

namespace longview::models {

// Earlier tokens that the heads of a layer see.
struct StackWindow {
  // Keys beside the token's own; unset: every earlier token.
  std::optional<int> keys;
  std::vector<int> dilation;  // Distance of the keys, per head; empty: 1.

  // Positions from the farthest key to the token, both included; 0: every earlier one.
  int span() const;
  bool operator==(const StackWindow&) const = default;
};

struct StackConfig {
  const char* family = "";  // Begins messages of failures.
  int vocab = 0;
  int width = 0;  // H
  int heads = 0;
  int intermediate = 0;
  int first_position = 0;            // Row of the position table of a text's first token.
  std::vector<StackWindow> windows;  // Per layer.
  Activation activation = Activation::kGelu;
  bool encoder = false;  // Layers attend to a document.

  int layers() const { return static_cast<int>(windows.size()); }
  int head_dim() const { return width / heads; }
  // Positions that the widest layer reaches back; 0: all.
  int longest_span() const;
};

// Keys and values of every token that a layer can still see; one strip for all layers.
kernels::CacheShape StackCacheShape(const StackConfig& config, kernels::DType blocks);
// Keys and values of a document, for every layer.
kernels::CacheShape DocumentCacheShape(const StackConfig& config, kernels::DType blocks);

struct StackLayer {
  Weight qkv;  // Query, key, value side by side: [3H, H].
  Weight out;
  NormWeight attention_norm;
  struct Cross {
    Weight query, out;
    NormWeight norm;
  };
  std::optional<Cross> cross;
  Weight expand, contract;
  NormWeight output_norm;
};

struct StackWeights {
  Table words;      // [V, H]
  Table positions;  // [positions, H]
  Table types;      // [1, H]: of token type 0; none: nothing is added.
  NormWeight embedding_norm;
  std::vector<StackLayer> layers;
  std::optional<Weight> head_dense;  // With head_norm.
  NormWeight head_norm;
  Weight logits;  // [V, H]
  DistanceTables distances;

  double parameters = 0;
  double memory_bytes = 0;  // On the host: packs, copies, and kept tables.

  // Whether linears have a way of their own for the few rows that decode: on a device, and on the
  // host by second packs.
  bool few_rows() const { return !logits.host || logits.host->rows != nullptr; }
};

}  // namespace longview::models
