// A batch of an encoder, on the host or on a device.
#pragma once

#include "models/encoder/family.h"

namespace longview::models {

// Sequences on their way through the layers. One thread uses it; it computes on all. Its
// constructor and Advance throw what LibTorch and the allocator throw, and DeviceError.
class EncoderBatch {
 public:
  virtual ~EncoderBatch() = default;

  // Runs the next layer, the embeddings before the first; returns whether layers are left.
  virtual bool Advance() = 0;

  // Sequence i leaves the batch before the next layer.
  virtual void Drop(int i) = 0;

  // After the last layer: the wanted rows of sequence i, [wanted, H]. REQUIRES: not dropped.
  virtual const float* Rows(int i) const = 0;

  // After the last layer: what the family's heads read of sequence i beside its rows.
  virtual ExtraRowsView Extra(int i) const = 0;
};

}  // namespace longview::models
