// Arrays one behind the other in one block of memory.
#pragma once

#include <cstddef>

#include "kernels/base/workspace.h"

namespace longview::kernels::cuda {

// Without memory bytes are counted.
class ArrayCarver {
 public:
  explicit ArrayCarver(std::byte* memory) : memory_(memory) {}

  template <typename T>
  T* Array(size_t count) {
    const size_t begin = used_;
    used_ += AlignUp(count * sizeof(T));
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + begin);
  }
  size_t used() const { return used_; }

 private:
  std::byte* const memory_;
  size_t used_ = 0;
};

}  // namespace longview::kernels::cuda
