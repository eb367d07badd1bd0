// Uploads the data that differs between steps: written to pinned memory, copied behind the work
// that the stream still has to do, read at addresses that never change.
//
// Two pinned copies take turns, so that the host writes the next step's lists while the last ones
// are still on their way; it waits only when both are.
//
// One thread at a time, the stream's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plugin_api.h"

namespace longview::kernels::cuda {

class StepUpload {
 public:
  // Borrows the plugin's table.
  StepUpload(const PluginApi& api, int32_t device) : api_(api), device_(device) {}
  ~StepUpload();
  StepUpload(const StepUpload&) = delete;
  StepUpload& operator=(const StepUpload&) = delete;

  // Takes the memory that steps of up to `bytes` need, when a model loads. Once.
  Status Reserve(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }
  std::byte* device() const { return static_cast<std::byte*>(memory_); }

  // Pinned memory for the next step, of all bytes.
  Status Begin(std::byte** host);
  // Copies the first `bytes` of it. Kernels that the stream was handed before still read the step
  // before; those handed over later read this one. REQUIRES: Begin.
  Status Send(Stream* stream, uint64_t bytes);

 private:
  struct Staging {
    void* memory = nullptr;
    Event* sent = nullptr;
    bool under_way = false;
  };

  const PluginApi& api_;
  const int32_t device_;
  uint64_t bytes_ = 0;
  void* memory_ = nullptr;
  std::array<Staging, 2> staging_;
  int next_ = 0;
};

}  // namespace longview::kernels::cuda
