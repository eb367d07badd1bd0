#include "kernels/cuda/token/decode_runner.h"

#include "kernels/base/check.h"

namespace longview::kernels::cuda {

uint64_t DecodeRunner::MemoryBytes(const DecodeShape& shape, const CacheShape& cache,
                                   const DecodeLimits& limits) {
  const DecodeRoom most = MostRoom(shape, limits.sequences, limits.tokens);
  return DecodeStep::ListBytes(shape, cache, most) + DecodeStep::BufferBytes(shape, most);
}

Status DecodeRunner::Reserve(const DecodeShape& shape, const CacheShape& cache,
                             const DecodeLimits& limits) {
  const DecodeRoom most = MostRoom(shape, limits.sequences, limits.tokens);
  shape_ = shape;
  cache_ = cache;
  return steps_.Reserve(DecodeStep::ListBytes(shape, cache, most),
                        DecodeStep::BufferBytes(shape, most));
}

Status DecodeRunner::Run(DecodeStep& step, const float** logits) {
  KERNEL_CHECK(DecodeStep::BufferBytes(shape_, step.room()) <= steps_.buffer_bytes());
  *logits = step.Logits(steps_.buffers());
  return steps_.Run(step, step.room().key(), DecodeStep::ListBytes(shape_, cache_, step.room()));
}

}  // namespace longview::kernels::cuda
