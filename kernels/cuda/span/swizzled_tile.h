// How the Hopper forward (span_warpgroup.h) lays keys and values out in shared memory, and how it
// tells wgmma so.
//
// A panel is 64 rows of 64 16-bit elements, 128 bytes a row, at a multiple of 1024 bytes. Within
// each 1024 bytes, eight rows, the 16-byte pieces of row r change places by r: so TMA writes
// (CU_TENSOR_MAP_SWIZZLE_128B), so wgmma reads, and eight rows' pieces of one column lie in
// different banks. A matrix of 64 keys is one panel for each 64 columns.
//
// Layouts: PTX ISA 8.0 and later, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and
// "Matrix Descriptor Format".
//
// Stateless functions: thread-safe, on either side.
#pragma once

#include <cstdint>

#include "kernels/span/plan.h"

namespace longview::kernels::cuda {

inline constexpr int kPanelColumns = 64;
inline constexpr int kPanelRowBytes = kPanelColumns * 2;
inline constexpr int kPanelBytes = kBlockSlots * kPanelRowBytes;
inline constexpr int kSwizzleRows = 8;
inline constexpr int kSwizzleBytes = kSwizzleRows * kPanelRowBytes;

// Offset of the piece of eight elements from `column` on, in bytes from the matrix's first panel.
LONGVIEW_HD inline int SwizzledPiece(int row, int column) {
  const int piece = column % kPanelColumns / 8;
  return column / kPanelColumns * kPanelBytes + row * kPanelRowBytes +
         (piece ^ row % kSwizzleRows) * 16;
}

// wgmma's description of a right operand in shared memory with this swizzle: its begin and two
// distances, all in bytes and below 256 KB.
LONGVIEW_HD inline uint64_t MatrixDescriptor(uint32_t begin, uint32_t leading, uint32_t stride) {
  constexpr uint64_t kSwizzle128 = 1;
  const auto field = [](uint32_t bytes) -> uint64_t { return (bytes & 0x3ffffu) >> 4; };
  return field(begin) | field(leading) << 16 | field(stride) << 32 | kSwizzle128 << 62;
}

// Keys as the right operand of scores, 64 keys by 16 columns from column 16 * step on; their rows
// run along the sum. Eight keys are kSwizzleBytes from the next eight; the leading distance is of
// no use here, and 16 by convention.
LONGVIEW_HD inline uint64_t KeysOperand(uint32_t matrix, int step) {
  constexpr int kSteps = kPanelColumns / 16;
  return MatrixDescriptor(matrix + step / kSteps * kPanelBytes + step % kSteps * 32, 16,
                          kSwizzleBytes);
}

// Values as the right operand of sums, 16 keys from key 16 * step on by all columns; their rows run
// across the sum ("transposed"). Eight keys are kSwizzleBytes from the next eight, 64 columns a
// panel from the next 64.
LONGVIEW_HD inline uint64_t ValuesOperand(uint32_t matrix, int step) {
  return MatrixDescriptor(matrix + step * 16 * kPanelRowBytes, kPanelBytes, kSwizzleBytes);
}

}  // namespace longview::kernels::cuda
