// The weights that operations use: one handle for a weight on the host or on a device.
//
// Immutable after load. Before a model is loaded, handles have sizes and no values, so that a
// forward can be counted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/span/kv_layout.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/device/device_weights.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

// A linear y = x W^T + b with W [out, in].
struct Weight {
  int64_t in = 0;
  int64_t out = 0;
  std::optional<DenseLayer> host;  // Packed, where the model runs on the host.
  DeviceLinear device;             // Set where it runs on a device.
};

// Columns of the compute type that products take for rows of their own beside their results.
int64_t ScratchColumns(const Weight& weight);

// Gain and bias of a LayerNorm over `width` columns.
struct NormWeight {
  int64_t width = 0;  // 0: the model has no such norm.
  Norm host;
  DeviceNorm device;
};

// A matrix [rows, width] that rows are looked up in.
class Table {
 public:
  Table() = default;
  // On the host: a tensor of the checkpoint, which outlives the table, or values.
  Table(const TensorView* stored, int64_t rows, int64_t width)
      : rows_(rows), width_(width), stored_(stored) {}
  Table(std::vector<float> values, int64_t rows, int64_t width)
      : rows_(rows), width_(width), values_(std::move(values)) {}

  explicit operator bool() const { return width_ > 0; }
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }

  // Host: copies row `row` to `to` [width].
  void CopyRow(int64_t row, float* to) const;

  // Host: the rows from `row` on of a table of values.
  const float* values(int64_t row = 0) const { return values_.data() + row * width_; }

  // A table of values, wherever it is.
  const float* floats() const { return device_ != nullptr ? device_ : values_.data(); }

  // Device: [rows, width] fp32.
  float* device() const { return device_; }
  void set_device(float* device) { device_ = device; }

 private:
  int64_t rows_ = 0;
  int64_t width_ = 0;
  const TensorView* stored_ = nullptr;
  std::vector<float> values_;
  float* device_ = nullptr;
};

// A matrix [rows, width] of fp32 beside its linear, for operations on its rows: a copy of the
// checkpoint's.
struct Matrix {
  FloatMatrix host;
  float* device = nullptr;
};

// Values of a call of attention: keys, values, rows of positions. fp32 on the host, of the model's
// type on a device.
class TypedRows {
 public:
  TypedRows() = default;
  TypedRows(std::vector<float> values, int64_t rows, int64_t width)
      : rows_(rows), width_(width), values_(std::move(values)) {}

  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  // [rows, width] of dtype(), where the model runs.
  const void* data() const { return device_ != nullptr ? device_ : values_.data(); }
  kernels::DType dtype() const { return type_; }

  void set_device(void* device, kernels::DType type) {
    device_ = device;
    type_ = type;
  }

 private:
  int64_t rows_ = 0;
  int64_t width_ = 0;
  std::vector<float> values_;
  void* device_ = nullptr;
  kernels::DType type_ = kernels::DType::kFloat32;
};

}  // namespace longview::models
