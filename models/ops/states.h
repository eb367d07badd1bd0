// States of sequences: rows of fp32 that a cache keeps beside its strips.
#pragma once

#include "kernels/pool/slice_rows.h"
#include "models/ops/backend.h"

namespace longview::models {

// Staged rows of states, in the memory that the backend reads.
struct StatesRef {
  const kernels::StateRow* data = nullptr;
  int64_t count = 0;
};
StatesRef StageStates(Backend& backend, std::span<const kernels::StateRow> rows);

namespace ops {

// Rows of fp32 or T from states, which lie `shift` floats behind those of the first layer.
struct LoadStates {
  StatesRef states;
  int64_t shift;
  Rows rows;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// The other way.
struct StoreStates {
  Rows rows;
  StatesRef states;
  int64_t shift;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
