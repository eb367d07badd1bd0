// Memory of a device and pinned memory of the host, by block. All is asked for when a model loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/device/device.h"

namespace longview::models {

// Owns a block of the device's memory. Throws DeviceError.
class DeviceBlock {
 public:
  DeviceBlock(const Device& device, size_t bytes);
  ~DeviceBlock();
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  const Device& device_;
  const size_t bytes_;
  void* data_ = nullptr;
};

// The same of host memory that the device copies from and to. Throws DeviceError.
class PinnedBlock {
 public:
  PinnedBlock(const Device& device, size_t bytes);
  ~PinnedBlock();
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  const Device& device_;
  const size_t bytes_;
  void* data_ = nullptr;
};

// Brings weights to the device while a model loads, through one pinned block. Throws DeviceError.
class WeightUpload {
 public:
  explicit WeightUpload(const Device& device);

  // `to` holds values.size() floats, or bfloat16 numbers if `bf16`.
  void Put(std::span<const float> values, bool bf16, void* to);

 private:
  const Device& device_;
  PinnedBlock staging_;
};

}  // namespace longview::models
