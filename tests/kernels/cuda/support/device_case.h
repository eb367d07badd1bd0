// A plan and call of the CPU's tests in the shape that device kernels take: tensors of another
// element type and other strides, blocks row by row, everything in memory that a test chooses: the
// host's for emulated kernels, a device's for real ones.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/span/plan_image.h"
#include "kernels/cuda/span/span_api.h"
#include "kernels/cuda/span/span_call.h"
#include "kernels/span/executor.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda::testing {

// How far apart heads lie: as they come, at multiples of 16 bytes, or at an odd distance.
enum class Strides { kNatural, kPieces, kOdd };

class DeviceCase {
 public:
  // `rows`: of q and out. `capacity`: of the image; at least CapacityOf(plan).
  DeviceCase(const Plan& plan, const Call& call, Element element, int rows, Strides strides,
             const PlanCapacity& capacity, TestDevice* device);

  // Forward and merge, with the kernel asked for. REQUIRES: the device runs it.
  void Run(SpanKernel kernel);

  // out as floats, [rows, H, Dv]. Rows that nobody wrote hold kUnwritten.
  std::vector<float> Output() const;
  // out's bits, [rows, H, Dv] elements.
  std::vector<uint32_t> Bits() const;

  static constexpr float kUnwritten = 96.0f;

 private:
  // Elements between neighbouring heads of D columns.
  int64_t HeadStride(int D) const;
  void* HoldTensor(const void* data, DType from, int64_t row_stride, int64_t head_stride, int rows,
                   int heads, int D, int64_t* new_row_stride, int64_t* new_head_stride);
  template <typename T>
  const T* UploadArray(const T* values, int64_t count) {
    return device_->Upload(std::vector<T>(values, values + count));
  }
  SpanSource HoldRows(const Plan& plan, const SlotMap& map, const Source& source);
  SpanSource HoldBlocks(const Plan& plan, int index, const Source& source);
  SpanTable HoldTable(const Plan& plan, int id, const Table& table);

  TestDevice* device_;
  Element element_;
  Strides strides_;
  int rows_;
  PlanCapacity capacity_;
  PlanView view_;
  SpanCall call_;
};

}  // namespace longview::kernels::cuda::testing
