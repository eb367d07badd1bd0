// Steps one after the other on a device: lists through pinned memory, then a recorded step, one per
// size that was met. Memory for the largest step is taken when a model loads.
//
// One thread at a time, the stream's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/check.h"
#include "kernels/cuda/graph_cache.h"
#include "kernels/cuda/plugin_api.h"
#include "kernels/cuda/step_upload.h"

namespace longview::kernels::cuda {

class RecordedSteps {
 public:
  // Borrows table and stream.
  RecordedSteps(const PluginApi& api, int32_t device, Stream* stream)
      : api_(api), device_(device), stream_(stream), upload_(api, device), graphs_(api, kGraphs) {}
  ~RecordedSteps();
  RecordedSteps(const RecordedSteps&) = delete;
  RecordedSteps& operator=(const RecordedSteps&) = delete;

  // Once, before the first step: of the largest step's lists, and of its buffers.
  Status Reserve(size_t list_bytes, size_t buffer_bytes);

  std::byte* buffers() const { return buffers_; }
  size_t buffer_bytes() const { return buffer_bytes_; }
  // Count of remembered sizes of steps.
  size_t sizes() const { return graphs_.sizes(); }

  // Hands a step to the stream; the next one overwrites its lists and buffers. A step offers
  //   WriteLists(host, device)     writes its lists to `host`, from where they go to `device`
  //   Run(api, stream, buffers)    hands over its work, which depends on the key alone
  // REQUIRES: a step within what was reserved.
  template <class Step>
  Status Run(Step& step, const GraphKey& key, size_t list_bytes) {
    KERNEL_CHECK(list_bytes <= upload_.bytes());
    std::byte* host = nullptr;
    if (const Status status = upload_.Begin(&host); status != 0) return status;
    step.WriteLists(host, upload_.device());
    if (const Status status = upload_.Send(stream_, list_bytes); status != 0) return status;
    return graphs_.Run(stream_, key, [&] { return step.Run(api_, stream_, buffers_); });
  }

 private:
  // Rooms grow with the power of two of a text's length, with the batch, and with how many of its
  // rows end a segment.
  static constexpr size_t kGraphs = 128;

  const PluginApi& api_;
  const int32_t device_;
  Stream* const stream_;
  StepUpload upload_;
  GraphCache graphs_;
  std::byte* buffers_ = nullptr;
  size_t buffer_bytes_ = 0;
};

}  // namespace longview::kernels::cuda
