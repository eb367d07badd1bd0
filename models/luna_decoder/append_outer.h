// Luna's causal attention as running sums of outer products:
// kernels/linear_attention/running_outer.h.
#pragma once

#include <span>

#include "kernels/cuda/linear_attention/outer_api.h"
#include "kernels/linear_attention/running_outer.h"
#include "models/ops/backend.h"

namespace longview::models {

// Staged tokens of sequences with running sums; packed rows and states in the backend's memory.
struct OuterRef {
  std::span<const kernels::OuterSequence> host;
  const kernels::cuda::DeviceOuterSequence* device = nullptr;
};
// `sequences` outlive the forward.
OuterRef StageOuter(Backend& backend, std::span<const kernels::OuterSequence> sequences);

namespace ops {

struct AppendOuter {
  OuterRef sequences;
  Rows q, k, v, g;  // [rows, heads * D] fp32, equal strides.
  Rows out;         // [rows, heads * D] fp32
  int heads = 1;
  kernels::OuterActivation activation = kernels::OuterActivation::kSoftplusLn2;

  // The factor of scores: 1 / the root of the head's width.
  float scale() const;
  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// packed = kernels::PackOuterRows of `rows` [n, heads * D] fp32.
struct PackOuter {
  Rows rows;
  float* packed;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
