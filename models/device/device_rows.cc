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
