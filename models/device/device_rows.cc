#include "models/device/device_rows.h"

#include "models/layers/span_rows.h"

namespace longview::models {

void DeviceRows::Add(float* x, const void* y, const float* bias, const DeviceNorm* norm,
                     int64_t rows, void* copy) const {
  const kernels::cuda::StreamRows args = {x,
                                          y,
                                          bias,
                                          norm != nullptr ? norm->view() : kernels::cuda::RowNorm{},
                                          copy,
                                          rows,
                                          static_cast<int32_t>(width_),
                                          SpanType(compute_)};
  device_.Check(device_.api().token.stream(device_.stream(), args), "a residual");
}

void DeviceRows::AddPrenorm(float* x, const void* y, const float* bias, const DeviceNorm& norm,
                            int64_t rows, void* out) const {
  const kernels::cuda::PrenormRows args = {
      x, y, bias, norm.view(), out, rows, static_cast<int32_t>(width_), SpanType(compute_)};
  device_.Check(device_.api().encoder.prenorm(device_.stream(), args), "a residual");
}

void DeviceRows::Copy(const void* in, int64_t in_stride, const int32_t* from, int64_t rows,
                      int64_t bytes, void* out) const {
  const kernels::cuda::CopyRows args = {
      in, out, from, nullptr, rows, static_cast<int32_t>(bytes), in_stride, bytes};
  device_.Check(device_.api().rows.copy(device_.stream(), args), "copying rows");
}

void DeviceRows::GatherFloats(const float* in, const int32_t* from, int64_t rows,
                              float* out) const {
  const int64_t bytes = width_ * int64_t{sizeof(float)};
  Copy(in, bytes, from, rows, bytes, out);
}

void DeviceRows::Gather(const void* in, int64_t in_stride, const int32_t* from, int64_t rows,
                        void* out) const {
  Copy(in, in_stride * ElementBytes(compute_), from, rows, row_bytes(), out);
}

void ApplyRotated(const Device& device, const DeviceLinear& linear, const DeviceRotary& rotary,
                  const void* x, int64_t rows, void* y) {
  MultiplyRows(device, linear, x, rows, y);
  const kernels::cuda::RotatedRows args = {y,
                                           linear.bias,
                                           rotary.angles,
                                           rotary.places,
                                           rows,
                                           static_cast<int32_t>(linear.out),
                                           static_cast<int32_t>(rotary.columns),
                                           static_cast<int32_t>(rotary.dim),
                                           SpanType(linear.compute)};
  device.Check(device.api().encoder.rotate(device.stream(), args), "rotary positions");
}

void ApplyLinear(const Device& device, const DeviceLinear& linear, const void* x, int64_t rows,
                 void* y) {
  MultiplyRows(device, linear, x, rows, y);
  AddBias(device, linear, y, rows, Activation::kNone);
}

}  // namespace longview::models
