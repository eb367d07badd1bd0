// A problem for Performer's attention: random rows of q, k and v side by side, a projection, and a
// call over them.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "kernels/pool/performer.h"

namespace longview::kernels::testing {

struct PerformerProblem {
  // Values as large as `spread`; projected ones are of size 1.
  PerformerProblem(int heads, int width, int features, std::vector<int32_t> image_offsets,
                   float spread = 1)
      : offsets(std::move(image_offsets)) {
    std::mt19937 random(heads * 100 + width);
    std::normal_distribution<float> normal(0, spread);
    const int64_t rows = offsets.back();
    qkv.resize(rows * 3 * heads * width);
    out.resize(rows * heads * width, -7);
    projection.resize(static_cast<size_t>(features) * width);
    for (float& value : qkv) value = normal(random);
    for (float& value : projection) value = normal(random) / spread;
    call.q = qkv.data();
    call.k = qkv.data() + heads * width;
    call.v = qkv.data() + 2 * heads * width;
    call.out = out.data();
    call.row_stride = 3 * heads * width;
    call.out_row_stride = heads * width;
    call.heads = heads;
    call.width = width;
    call.features = features;
    call.projection = projection.data();
    call.offsets = offsets;
  }
  PerformerProblem(const PerformerProblem&) = delete;
  PerformerProblem& operator=(const PerformerProblem&) = delete;

  std::vector<int32_t> offsets;
  std::vector<float> qkv, out, projection;
  PerformerCall call;
};

}  // namespace longview::kernels::testing
