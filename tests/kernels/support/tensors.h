// Random tensors for kernel tests: [rows, heads, D], float or bfloat16.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/span/executor.h"

namespace longview::kernels::testing {

class Tensor {
 public:
  Tensor(int rows, int heads, int dim, DType dtype = DType::kFloat32)
      : rows_(rows), heads_(heads), dim_(dim), dtype_(dtype) {
    const size_t elements = static_cast<size_t>(rows) * heads * dim;
    if (dtype == DType::kFloat32) {
      floats_.assign(elements, 0.0f);
    } else {
      bits_.assign(elements, 0);
    }
  }

  static Tensor Random(int rows, int heads, int dim, std::mt19937* random,
                       DType dtype = DType::kFloat32, float scale = 1.0f) {
    Tensor tensor(rows, heads, dim, dtype);
    std::normal_distribution<float> normal(0.0f, scale);
    for (size_t i = 0; i < tensor.elements(); ++i) tensor.Set(i, normal(*random));
    return tensor;
  }

  // Rows [first, first + rows) as a tensor of their own.
  Tensor Slice(int first, int rows) const {
    Tensor slice(rows, heads_, dim_, dtype_);
    for (size_t i = 0; i < slice.elements(); ++i) {
      slice.Set(i, Get(static_cast<size_t>(first) * heads_ * dim_ + i));
    }
    return slice;
  }

  int rows() const { return rows_; }
  int heads() const { return heads_; }
  int dim() const { return dim_; }
  DType dtype() const { return dtype_; }
  size_t elements() const { return static_cast<size_t>(rows_) * heads_ * dim_; }
  int64_t row_stride() const { return int64_t{heads_} * dim_; }

  const void* data() const {
    return dtype_ == DType::kFloat32 ? static_cast<const void*>(floats_.data()) : bits_.data();
  }
  void* data() {
    return dtype_ == DType::kFloat32 ? static_cast<void*>(floats_.data()) : bits_.data();
  }

  float Get(size_t i) const {
    return dtype_ == DType::kFloat32 ? floats_[i] : BFloat16ToFloat(bits_[i]);
  }
  void Set(size_t i, float value) {
    if (dtype_ == DType::kFloat32) {
      floats_[i] = value;
    } else {
      bits_[i] = FloatToBFloat16(value);
    }
  }
  float At(int row, int head, int d) const { return Get(Index(row, head, d)); }
  void SetAt(int row, int head, int d, float value) { Set(Index(row, head, d), value); }

 private:
  size_t Index(int row, int head, int d) const {
    return (static_cast<size_t>(row) * heads_ + head) * dim_ + d;
  }

  int rows_, heads_, dim_;
  DType dtype_;
  std::vector<float> floats_;
  std::vector<uint16_t> bits_;
};

inline Source RowsSource(const Tensor& k, const Tensor& v) {
  Source source;
  source.k = k.data();
  source.v = v.data();
  source.dtype = k.dtype();
  source.k_row_stride = k.row_stride();
  source.k_head_stride = k.dim();
  source.v_row_stride = v.row_stride();
  source.v_head_stride = v.dim();
  return source;
}

// A call over q and out; sources and tables are left to the test.
inline Call MakeCall(const Tensor& q, Tensor* out, float scale) {
  Call call;
  call.q = q.data();
  call.out = out->data();
  call.dtype = q.dtype();
  call.q_row_stride = q.row_stride();
  call.q_head_stride = q.dim();
  call.out_row_stride = out->row_stride();
  call.out_head_stride = out->dim();
  call.Dk = q.dim();
  call.Dv = out->dim();
  call.H = q.heads();
  call.scale = scale;
  return call;
}

}  // namespace longview::kernels::testing
