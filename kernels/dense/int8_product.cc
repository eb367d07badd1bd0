#include "kernels/dense/int8_product.h"

#include <cstring>
#include <vector>

#include "kernels/base/check.h"
#include "kernels/base/cpu_features.h"
#include "kernels/dense/int8_rows_body.h"

namespace longview::kernels {

extern const Int8Kernels kInt8Avx2;
extern const Int8Kernels kInt8Avx512Rows;

namespace {

template <typename X>
void MultiplyRef(const int8_t* unit, const void* x, int64_t columns, int64_t rows, int32_t* sums) {
  const auto* row = static_cast<const X*>(x);
  for (int64_t r = 0; r < rows; ++r, row += columns) {
    for (int64_t o = 0; o < kInt8Unit; ++o) {
      int32_t sum = 0;
      for (int64_t i = 0; i < columns; ++i) sum += row[i] * unit[Int8Place(o, i, columns)];
      sums[r * kInt8Unit + o] = sum;
    }
  }
}

}  // namespace

const Int8Kernels kInt8Ref = MakeInt8Kernels<int16_t, 0>("ref", MultiplyRef<int16_t>);
const Int8Kernels kInt8ShiftedRef =
    MakeInt8Kernels<uint8_t, 128>("shifted ref", MultiplyRef<uint8_t>);

const Int8Kernels* Int8KernelsOfAvx2() { return IsaSupported(Isa::kAvx2) ? &kInt8Avx2 : nullptr; }

const Int8Kernels* Int8RowsOfAvx512() {
  return IsaSupported(Isa::kAvx512) ? &kInt8Avx512Rows : nullptr;
}

void PackInt8Weight(std::span<const float> weight, int64_t out, int64_t in, int8_t* packed,
                    float* scales) {
  KERNEL_CHECK(static_cast<int64_t>(weight.size()) == out * in && in <= kInt8MaxInputs);
  std::memset(packed, 0, Int8WeightBytes(out, in));
  std::vector<int16_t> row(static_cast<size_t>(Int8Columns(in)));
  for (int64_t o = 0; o < out; ++o) {
    scales[o] = QuantizeRow<float, int16_t, 0>(weight.data() + o * in, in, row.data());
    for (int64_t i = 0; i < in; ++i) {
      packed[Int8Place(o, i, in)] = static_cast<int8_t>(row[static_cast<size_t>(i)]);
    }
  }
}

}  // namespace longview::kernels
