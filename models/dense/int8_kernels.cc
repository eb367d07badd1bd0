#include "models/dense/int8_kernels.h"

#include <algorithm>
#include <exception>
#include <random>
#include <vector>

#include "ATen/native/CPUBlas.h"
#include "kernels/base/cpu_features.h"

namespace longview::models {
namespace {

using kernels::Int8Kernels;
using kernels::kInt8Quad;
using kernels::kInt8Unit;

void MultiplyByMicrokernel(const int8_t* unit, const void* x, int64_t columns, int64_t rows,
                           int32_t* sums) {
  at::native::cpublas::brgemm(rows, kInt8Unit, columns, columns, kInt8Unit, kInt8Unit,
                              /*add_C=*/false, static_cast<const unsigned char*>(x),
                              reinterpret_cast<const signed char*>(unit), sums, /*is_vnni=*/true);
}

// Our own AMX kernels configure tiles too, so no thread keeps the library's.
void ReleaseMicrokernel() { at::native::cpublas::brgemm_release(/*is_vnni=*/true); }

// Extreme values beside random ones: kernels that add pairs in 16 bits saturate on them.
bool IsExact(const Int8Kernels& kernels) {
  std::mt19937 random(11);
  for (const int64_t columns : {4, 60, 768, 772}) {
    for (const int64_t rows : {1, 7, 64}) {
      std::vector<uint8_t> x(static_cast<size_t>(rows * columns));
      std::vector<int8_t> unit(static_cast<size_t>(columns * kInt8Unit));
      for (uint8_t& value : x) value = random() % 4 == 0 ? 255 : static_cast<uint8_t>(random());
      for (int8_t& value : unit) value = random() % 4 == 0 ? 127 : static_cast<int8_t>(random());
      std::vector<int32_t> sums(static_cast<size_t>(rows * kInt8Unit)), want(sums.size());
      kernels::kInt8ShiftedRef.multiply(unit.data(), x.data(), columns, rows, want.data());
      try {
        kernels.multiply(unit.data(), x.data(), columns, rows, sums.data());
        kernels.release();
      } catch (const std::exception&) {
        return false;  // The library has no such kernel here.
      }
      if (sums != want) return false;
    }
  }
  return true;
}

// Null where the CPU has no int8 dot product, or the library no exact kernel.
const Int8Kernels* Microkernels() {
  if (!kernels::Int8IsNative()) return nullptr;
  static const Int8Kernels kernels = [] {
    Int8Kernels made = *kernels::Int8RowsOfAvx512();
    made.name = "onednn";
    made.multiply = MultiplyByMicrokernel;
    made.release = ReleaseMicrokernel;
    return made;
  }();
  return IsExact(kernels) ? &kernels : nullptr;
}

Int8Choice Choose() {
  if (const Int8Kernels* found = Microkernels()) return {Int8Support::kNative, found};
  if (const Int8Kernels* found = kernels::Int8KernelsOfAvx2()) {
    return {Int8Support::kWidened, found};
  }
  return {Int8Support::kNone, &kernels::kInt8Ref};
}

}  // namespace

const Int8Choice& ChooseInt8() {
  static const Int8Choice choice = Choose();
  return choice;
}

}  // namespace longview::models
