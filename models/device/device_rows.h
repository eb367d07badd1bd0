// Rows of one width on a device, as layers treat them between products and attention: work for the
// device's stream, nothing waits. "T" is an element of the compute type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/dense/compute.h"
#include "models/device/device.h"
#include "models/device/device_linear.h"
#include "models/device/device_weights.h"

namespace longview::models {

// Borrows the device. Members throw DeviceError.
class DeviceRows {
 public:
  DeviceRows(const Device& device, Compute compute, int64_t width)
      : device_(device), compute_(compute), width_(width) {}

  // x = x + y + bias, then norm(x) in place where there is one; copy = x in T. y T [rows, width],
  // bias [width] and copy may be null.
  void Add(float* x, const void* y, const float* bias, const DeviceNorm* norm, int64_t rows,
           void* copy) const;
  // x = x + y + bias, out = norm(x) in T. y and bias may be null.
  void AddPrenorm(float* x, const void* y, const float* bias, const DeviceNorm& norm, int64_t rows,
                  void* out) const;

  void Norm(float* x, const DeviceNorm& norm, int64_t rows, void* copy) const {
    Add(x, nullptr, nullptr, &norm, rows, copy);
  }
  void Prenorm(float* x, const DeviceNorm& norm, int64_t rows, void* out) const {
    AddPrenorm(x, nullptr, nullptr, norm, rows, out);
  }

 private:
  const Device& device_;
  const Compute compute_;
  const int64_t width_;
};

// Queries and keys among the columns of projected rows, turned by the angles of their places.
struct DeviceRotary {
  const float* angles = nullptr;    // [places, dim]: dim / 2 cosines, then dim / 2 sines.
  const int32_t* places = nullptr;  // [rows]
  int64_t dim = 0;                  // Columns of a head.
  int64_t columns = 0;              // The first ones are turned.
};
// y = x W^T + bias, then the rotation. As ApplyLinear.
void ApplyRotated(const Device& device, const DeviceLinear& linear, const DeviceRotary& rotary,
                  const void* x, int64_t rows, void* y);

// y = x W^T + bias. x is readable and y writable kDevicePanelTail rows past `rows`.
void ApplyLinear(const Device& device, const DeviceLinear& linear, const void* x, int64_t rows,
                 void* y);

}  // namespace longview::models
