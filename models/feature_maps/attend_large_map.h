// Long-short attention of one large map slice by slice (slice_attention.h). The host's alone; a
// device has room for whole maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/feature_maps/map_bands.h"
#include "models/layers/compute_context.h"
#include "models/ops/backend.h"

namespace longview::models {

// The rows of x that the attention asks for, when it needs them and as often as it takes. Tokens
// [begin, end) by rank.
class LargeMapRows {
 public:
  virtual ~LargeMapRows() = default;
  // Writes scores of these rows into the operation's.
  virtual void Score(int64_t begin, int64_t end) const = 0;
  // T [end - begin, 3d]; without `queries` these are not read.
  virtual void Project(int64_t begin, int64_t end, bool queries, std::byte* to) const = 0;
  virtual void ProjectClass(std::byte* to) const = 0;  // T [class tokens, 3d]
  virtual std::vector<kernels::Table> Tables(size_t shape) const = 0;
};

// Memory of the operation, for the largest of these bands.
std::byte* CarveLargeMap(const LongShortPattern& pattern, std::span<const LongShortBand> bands,
                         const ComputeContext& context, Carver& carver);

namespace ops {

struct AttendLargeMap {
  const LongShortPattern& pattern;
  const LongShortBand& band;
  const NormWeight* landmark_norm;  // Null: landmarks as they are.
  const LargeMapRows& rows;
  Rows qkv;                       // T [slice rows, 3d]
  Rows out;                       // T [rows, d] with a panel's tail.
  float* scores = nullptr;        // [tokens, h r]; may share out's memory.
  float* value_scores = nullptr;  // [tokens, h r] where values have weights of their own.
  std::byte* memory = nullptr;    // Memory by CarveLargeMap; null with in_scratch.
  bool in_scratch = false;        // Scratch is used instead of `memory`; `rows` take none.

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
