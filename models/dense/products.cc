#include "models/dense/products.h"

#include "ATen/core/Tensor.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/mm.h"
#include "c10/core/InferenceMode.h"

namespace longview::models {
namespace {

at::Tensor Matrix(const float* data, int64_t rows, int64_t columns, int64_t stride) {
  return at::from_blob(const_cast<float*>(data), {rows, columns}, {stride, 1});
}

}  // namespace

void TransposedProduct(const float* a, const float* b, int64_t n, int64_t f, int64_t d, float* out,
                       int64_t stride) {
  const c10::InferenceMode guard;
  Matrix(out, f, d, stride).copy_(at::mm(Matrix(a, n, f, f).t(), Matrix(b, n, d, d)));
}

}  // namespace longview::models
