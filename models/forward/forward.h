// A model's forward over a ragged batch, written once for every backend.
//
// A forward plans when it is made: which rows there are and who sees whom. Then a backend has it
// stage its lists, take its buffers and run its layers. Text encoders (encoder/pass.h), image
// models (vision/staged_pass.h) and decoders (generation/token_forward.h) add what leaves the
// forward; what runs it is host_runner.h, or forward_part.h and generation/device_token_pass.h on a
// device.
#pragma once

#include <vector>

#include "models/layers/compute_context.h"
#include "models/ops/backend.h"

namespace longview::models {

// Used by one thread. Everything it was made of outlives it.
class Forward {
 public:
  virtual ~Forward() = default;

  virtual int layers() const = 0;  // At least 1.

  // ---- In this order; staged again where rows left between layers ----
  virtual void Stage(Backend& backend) = 0;
  virtual void Take(Backend& backend) = 0;
  // Embeddings, and what the first layer reads.
  virtual void Embed(Backend& backend) = 0;
  virtual void Layer(Backend& backend, int layer) = 0;

  // After the last layer: fp32 rows, dense, that whoever runs the forward takes; empty ones do not
  // count.
  virtual std::vector<Rows> Results() const { return {}; }
};

// Needs and work of a forward.
struct ForwardCount {
  ForwardNeed need;
  EncoderWork work;
};

// Has the forward run over no memory: all of it on a backend that counts.
void RunThrough(Forward& forward, Backend& count);
ForwardCount CountOnHost(Forward& forward, const ComputeContext& context);
ForwardCount CountOnDevice(Forward& forward, Compute compute);

// Bytes of a forward's results.
size_t ResultBytes(const Forward& forward);

}  // namespace longview::models
