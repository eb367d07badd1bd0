// Attention of few global tokens to all tokens of their sequence (Beltagy et al. 2020, section
// 3.1), with key and value projections folded into one vector per head and row instead of a product
// over all tokens: q W_k x = (q W_k) x.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/pool/pool_api.h"
#include "models/ops/backend.h"

namespace longview::models {

// Global rows of one sequence.
struct FoldGroup {
  int32_t row0;  // Rows of the sequence.
  int32_t tokens;
  int32_t first;  // First of its global rows in the lists of Folds.
  int32_t count;
};

// Sequences of equally many global rows, which a device treats together.
struct DeviceFold {
  const int32_t* begins = nullptr;  // [sequences] rows of x.
  const int32_t* ends = nullptr;
  const kernels::cuda::PoolPiece* pieces = nullptr;  // [piece_count]
  const int32_t* piece0 = nullptr;                   // [sequences + 1]
  int32_t first = 0;                                 // First group of these sequences.
  int32_t sequences = 0;
  int32_t piece_count = 0;
  int32_t longest = 0;  // Rows of the longest sequence.
};

// Staged groups. Borrows them.
struct Folds {
  std::span<const FoldGroup> groups;
  IndexRef rows;                     // Row of every global row.
  IndexRef outs;                     // Index of its output row.
  const uint8_t* visible = nullptr;  // [rows of x], 0 = left out.
  std::vector<DeviceFold> device;    // Empty on the host.
};
// The lists outlive the forward.
Folds StageFolds(Backend& backend, std::span<const FoldGroup> groups, std::span<const int32_t> rows,
                 std::span<const int32_t> outs, std::span<const uint8_t> visible);

namespace ops {

// out[outs[i]] = attention of global row i, in fp32 over the residual stream.
struct AttendFolded {
  const Folds& folds;
  int heads;
  const Weight& query;      // [width, width]
  const Weight& key_value;  // [2 width, width], of which the values' bias is read.
  const Matrix& keys;       // [width, width] of key_value.
  const Matrix& values;     // [width, width] of key_value.
  Rows x;                   // [rows, width] fp32
  Rows input;               // T [rows, width] of it.
  Rows out;                 // T [.., width]

  int64_t width() const { return x.width; }
  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
