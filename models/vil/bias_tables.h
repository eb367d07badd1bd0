// Biases between the tokens of maps by their distance, as the tables that plans of attention name.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/ops/backend.h"

namespace longview::models {

// One map size: column rows[i] of a learned table [heads, learned] is entry i.
struct MapBias {
  std::span<const int32_t> rows;
  int64_t learned = 0;
  // A device's: whether the table is of another size and has to be asked for.
  bool resized = false;
  // By block: on the host the entries [heads, rows], on a device the resized table
  // [heads, learned].
  std::function<std::span<const float>(int)> of_block;
};

// Entries [first, first + count) of a device's joined table are of one map size.
struct DeviceBias {
  int64_t first = 0;
  int64_t count = 0;
  int64_t learned_entries = 0;
  const int32_t* entries = nullptr;
  std::vector<const float*> learned;  // By block; empty where the block's own is read.
};

// Staged biases. Borrows them.
struct BiasRef {
  const std::vector<MapBias>* maps = nullptr;
  // A device's.
  std::vector<DeviceBias> device;
  int64_t entries = 0;
  int heads = 1;
};
BiasRef StageBiases(Backend& backend, const std::vector<MapBias>& maps, int heads, int blocks);
// Floats of memory that AddBiases writes.
int64_t BiasFloats(const Backend& backend, const std::vector<MapBias>& maps, int heads);

namespace ops {

// Adds the tables of a call of attention: on the host one per map size, on a device one of all.
struct AddBiases {
  const BiasRef& biases;
  const Table& learned;  // The block's own.
  int block;
  float* memory;
  std::vector<kernels::Table>& tables;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
