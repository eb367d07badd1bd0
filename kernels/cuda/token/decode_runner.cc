#include "kernels/cuda/token/decode_runner.h"

#include "kernels/base/check.h"

namespace longview::kernels::cuda {

DecodeRunner::~DecodeRunner() {
  // Recorded steps may still run.
  (void)api_.synchronize(stream_);
  if (buffers_ != nullptr) (void)api_.release(device_, buffers_);
}

uint64_t DecodeRunner::MemoryBytes(const DecodeShape& shape, const CacheShape& cache,
                                   const DecodeLimits& limits) {
  const DecodeRoom most = MostRoom(shape, limits.sequences, limits.tokens);
  return DecodeStep::ListBytes(shape, cache, most) + DecodeStep::BufferBytes(shape, most);
}

Status DecodeRunner::Reserve(const DecodeShape& shape, const CacheShape& cache,
                             const DecodeLimits& limits) {
  KERNEL_CHECK(buffers_ == nullptr);
  const DecodeRoom most = MostRoom(shape, limits.sequences, limits.tokens);
  shape_ = shape;
  cache_ = cache;
  if (const Status status = upload_.Reserve(DecodeStep::ListBytes(shape, cache, most));
      status != 0) {
    return status;
  }
  buffer_bytes_ = DecodeStep::BufferBytes(shape, most);
  void* buffers = nullptr;
  const Status status = api_.allocate(device_, buffer_bytes_, &buffers);
  buffers_ = static_cast<std::byte*>(buffers);
  return status;
}

Status DecodeRunner::Run(DecodeStep& step, const float** logits) {
  const size_t list_bytes = DecodeStep::ListBytes(shape_, cache_, step.room());
  KERNEL_CHECK(list_bytes <= upload_.bytes());
  KERNEL_CHECK(DecodeStep::BufferBytes(shape_, step.room()) <= buffer_bytes_);
  std::byte* host = nullptr;
  if (const Status status = upload_.Begin(&host); status != 0) return status;
  step.WriteLists(host, upload_.device());
  if (const Status status = upload_.Send(stream_, list_bytes); status != 0) return status;
  *logits = step.Logits(buffers_);
  return graphs_.Run(stream_, step.room().key(), [&] { return step.Run(api_, stream_, buffers_); });
}

}  // namespace longview::kernels::cuda
