// Lists of a batch on their way to a device: written to pinned memory one behind the other, copied
// in one go, read at the same offsets of a block of device memory.
//
// Two passes run the same code, as with Carver: one over no memory counts bytes. One thread uses
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/base/workspace.h"

namespace longview::models {

class StagedLists {
 public:
  // Null bases: bytes are counted, addresses are null.
  StagedLists(std::byte* host, std::byte* device) : host_(host), device_(device) {}

  // Address of the copy of `values` on the device.
  template <typename T>
  const T* Add(std::span<const T> values) {
    return reinterpret_cast<const T*>(AddBytes(values.size_bytes(), [&](std::byte* to) {
      if (!values.empty()) std::memcpy(to, values.data(), values.size_bytes());
    }));
  }

  template <typename T>
  const T* Add(const std::vector<T>& values) {
    return Add(std::span<const T>(values));
  }

  // Add for bytes that `write(host memory)` writes.
  template <typename Write>
  const std::byte* AddBytes(size_t bytes, Write&& write) {
    Note(static_cast<int64_t>(bytes));
    const size_t at = used_;
    used_ += kernels::AlignUp(bytes);
    if (host_ == nullptr) return nullptr;
    write(host_ + at);
    return device_ + at;
  }

  size_t used() const { return used_; }

  // From here on the sizes of all lists go to `sizes`: equal ones lie at equal addresses.
  void NoteSizes(std::vector<int64_t>* sizes) { sizes_ = sizes; }
  // A number that work over the lists depends on, beside their sizes.
  void Note(int64_t number) {
    if (sizes_ != nullptr) sizes_->push_back(number);
  }

 private:
  std::byte* host_;
  std::byte* device_;
  size_t used_ = 0;
  std::vector<int64_t>* sizes_ = nullptr;
};

}  // namespace longview::models
