// Products of rows with a weight matrix in 8-bit integers, y = x . W^T: a row of activations is
// quantised with one scale of its own, a row of weights with another, and what lies between the two
// scales is summed exactly in 32-bit integers.
//
// The bits of a result therefore depend on its row and the weights alone: not on the number of
// rows, their place, the threads or the instruction set. Scales are symmetric: the largest
// magnitude of a row becomes 127.
//
// Stateless: thread-safe. All memory is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace longview::kernels {

inline constexpr int64_t kInt8Unit = 64;  // Outputs that lie together; rows of one Multiply.
inline constexpr int64_t kInt8Quad = 4;   // Inputs that lie together.
// Sums of 127 x 127, and of 255 x 127 where rows are shifted by 128, stay below 2^31.
inline constexpr int64_t kInt8MaxInputs = 65536;

// A weight of `out` rows is packed as [Int8Units(out)][Int8Columns(in) / 4][64][4], filled up with
// zeros.
inline constexpr int64_t Int8Units(int64_t out) { return (out + kInt8Unit - 1) / kInt8Unit; }
inline constexpr int64_t Int8Columns(int64_t in) {
  return (in + kInt8Quad - 1) / kInt8Quad * kInt8Quad;
}
inline constexpr size_t Int8WeightBytes(int64_t out, int64_t in) {
  return static_cast<size_t>(Int8Units(out) * kInt8Unit * Int8Columns(in));
}

// Quantises a row-major [out, in] weight into `packed` [Int8WeightBytes] and scales [out]:
// weight[o, i] is about scales[o] * packed value. A row with a value that is not finite gets the
// scale NaN.
void PackInt8Weight(std::span<const float> weight, int64_t out, int64_t in, int8_t* packed,
                    float* scales);

// The column of a packed weight's element.
inline constexpr size_t Int8Place(int64_t o, int64_t i, int64_t in) {
  return static_cast<size_t>(o / kInt8Unit * kInt8Unit * Int8Columns(in) +
                             i / kInt8Quad * kInt8Quad * kInt8Unit + o % kInt8Unit * kInt8Quad +
                             i % kInt8Quad);
}

// One way to multiply: an instruction set's operations on single rows and units. All ways give the
// same bits.
struct Int8Kernels {
  const char* name = nullptr;
  int element_bytes = 1;  // A quantised activation is u8 if `shift` is set, else s16.
  int shift = 0;          // Added to quantised activations: 128 or 0.

  // Quantises x [in] to `out` [Int8Columns(in)], filled up with zeros' value. Returns the scale;
  // NaN if a value is not finite, and then `out` is all zeros' value.
  float (*quantize)(const float* x, int64_t in, void* out) = nullptr;
  float (*quantize_bf16)(const uint16_t* x, int64_t in, void* out) = nullptr;

  // sums[r * 64 + o] = sum over i of x[r, i] * weight[o, i], for rows <= 64 rows of x
  // [rows, columns] and one packed unit.
  void (*multiply)(const int8_t* unit, const void* x, int64_t columns, int64_t rows,
                   int32_t* sums) = nullptr;

  // y[o] = (sums[o] - offsets[o]) * scales[o] * row_scale for o < count; offsets are `shift` times
  // the sums of the weight's rows.
  void (*dequantize)(const int32_t* sums, const int32_t* offsets, const float* scales,
                     float row_scale, int64_t count, float* y) = nullptr;
  void (*dequantize_bf16)(const int32_t* sums, const int32_t* offsets, const float* scales,
                          float row_scale, int64_t count, uint16_t* y) = nullptr;

  // Ends a thread's products; null: nothing to end.
  void (*release)() = nullptr;
};

// The definition, in plain loops, on either form of activations.
extern const Int8Kernels kInt8Ref;
extern const Int8Kernels kInt8ShiftedRef;
// Products of 16-bit pairs, for CPUs without an int8 dot product; null where AVX2 is missing.
const Int8Kernels* Int8KernelsOfAvx2();
// Row operations for u8 activations, whose `multiply` a library brings; null without AVX-512.
const Int8Kernels* Int8RowsOfAvx512();

}  // namespace longview::kernels
