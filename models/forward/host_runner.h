// A forward on the host, layer by layer, in scratch that its model keeps.
#pragma once

#include "models/dense/scratch_pool.h"
#include "models/forward/forward.h"
#include "models/ops/host_backend.h"

namespace longview::models {

// Used by the executor's thread; throws what LibTorch and the allocator throw.
class HostRunner {
 public:
  // `need` was counted of this forward. All is borrowed; `times` may be null.
  HostRunner(Forward& forward, const ForwardNeed& need, const ComputeContext& context,
             ScratchPool& scratch, RunTimes* times)
      : forward_(forward),
        scratch_(scratch, need.memory()),
        backend_(context, need, scratch_.data(), times) {}

  // Once, before the first layer.
  void Begin() {
    forward_.Stage(backend_);
    forward_.Take(backend_);
  }
  // After rows left: their lists are others.
  void StageAgain() { forward_.Stage(backend_); }
  // The next layer, embeddings before the first; returns whether layers are left. REQUIRES: some
  // are.
  bool Advance() {
    if (layer_ == 0) forward_.Embed(backend_);
    forward_.Layer(backend_, layer_);
    return ++layer_ < forward_.layers();
  }
  int layer() const { return layer_; }  // The next one.
  bool done() const { return layer_ >= forward_.layers(); }
  Backend& backend() { return backend_; }

 private:
  Forward& forward_;
  ScratchLease scratch_;
  HostBackend backend_;
  int layer_ = 0;
};

}  // namespace longview::models
