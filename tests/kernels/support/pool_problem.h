// Problems for pooling over segments: random scores and values, and a call over them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "tests/kernels/support/tensors.h"

namespace longview::kernels::testing {

struct PoolShape {
  const char* name;
  std::vector<int> lengths;
  int heads;
  int per_head;
  int width;
  bool full_width = false;  // Every column reads all channels.
  DType dtype = DType::kFloat32;
  bool holes = false;  // Some tokens are masked, and the last segment as a whole.

  int columns() const { return heads * per_head; }
  int channels() const { return full_width ? width : heads * width; }
};

struct PoolData {
  explicit PoolData(const PoolShape& shape, int value_sets = 1) : shape(shape) {
    offsets.push_back(0);
    for (const int n : shape.lengths) offsets.push_back(offsets.back() + n);
    std::mt19937 random(23);
    scores = Tensor::Random(tokens(), 1, shape.columns(), &random, DType::kFloat32, 3.0f);
    for (int i = 0; i < value_sets; ++i) {
      values.push_back(Tensor::Random(tokens(), 1, shape.channels(), &random, shape.dtype));
    }
    visible.assign(static_cast<size_t>(tokens()), 1);
    for (int t = 0; shape.holes && t < tokens(); ++t) {
      visible[t] = t % 3 != 0 && t < offsets[offsets.size() - 2] ? 1 : 0;
    }
  }
  int tokens() const { return offsets.back(); }
  int segments() const { return static_cast<int>(offsets.size()) - 1; }

  const PoolShape& shape;
  std::vector<int32_t> offsets;
  Tensor scores{0, 1, 1};
  std::vector<Tensor> values;
  std::vector<uint8_t> visible;
};

// The call over all of it, and where its outputs go.
struct Pooled {
  explicit Pooled(const PoolData& data) : values(data.values.size()), out(data.values.size()) {
    const PoolShape& shape = data.shape;
    for (size_t i = 0; i < values.size(); ++i) {
      out[i].assign(static_cast<size_t>(data.segments()) * shape.columns() * shape.width, -7.0f);
      values[i].data = data.values[i].data();
      values[i].dtype = shape.dtype;
      values[i].row_stride = shape.channels();
      values[i].head_stride = shape.full_width ? 0 : shape.width;
      values[i].width = shape.width;
      values[i].out = out[i].data();
    }
    call.scores = static_cast<const float*>(data.scores.data());
    call.score_stride = shape.columns();
    call.columns = shape.columns();
    call.columns_per_head = shape.full_width ? shape.columns() : shape.per_head;
    call.visible = shape.holes ? data.visible.data() : nullptr;
    call.offsets = data.offsets;
    call.values = values;
  }
  Pooled(const Pooled&) = delete;
  Pooled& operator=(const Pooled&) = delete;

  std::vector<PoolValue> values;
  std::vector<std::vector<float>> out;
  PoolCall call;
};

}  // namespace longview::kernels::testing
