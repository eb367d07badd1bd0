// The part of a transformer layer behind attention; see models/layers/block_tail.h.
#pragma once

#include "models/ops/backend.h"

namespace longview::models {

struct BlockWeights {
  const Weight* out = nullptr;  // Null: attention's output is added as it is.
  const NormWeight* after_attention = nullptr;
  const Weight* expand = nullptr;
  const Weight* gate = nullptr;  // act(expand(y)) * gate(y); null: none.
  const Weight* contract = nullptr;
  const NormWeight* after_layer = nullptr;  // Pre-norm: of what reads the layer's output next.
  const NormWeight* last = nullptr;         // x = norm(x) behind all, in fp32; null: none.
  Activation activation = Activation::kGelu;
  NormPlace norms = NormPlace::kPost;
};

struct BlockRows {
  Rows x;      // [rows, width] fp32 residual stream.
  Rows input;  // T [rows, width] what the next layer reads; may be x.
  Rows z;      // T [rows, width] attention's output.
};

namespace ops {

// Few rows have no gate.
struct FeedForward {
  const BlockWeights& weights;
  BlockRows rows;

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
