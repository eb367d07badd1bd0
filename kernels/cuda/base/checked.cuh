// Shared by every .cu file of the plugin: streams as they are inside, and errors as numbers.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/base/plugin_types.h"

namespace longview::kernels::cuda {

struct Stream {
  int device = 0;
  cudaStream_t stream = nullptr;
  bool owned = true;
};

// Takes the error from the runtime, which would report it to the next launch of this thread too.
inline Status ToStatus(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return static_cast<Status>(error);
}

// The error of the launch just made, if any; a kernel's own errors show at the next wait.
inline Status LaunchStatus() { return ToStatus(cudaGetLastError()); }

// Makes the stream's device the calling thread's; launches then go there.
inline cudaError_t Enter(const Stream* stream) { return cudaSetDevice(stream->device); }

}  // namespace longview::kernels::cuda

// Leaves the function with the error of a CUDA call.
#define LONGVIEW_RETURN_IF_CUDA_ERROR(call)                                 \
  do {                                                                      \
    if (const cudaError_t call_error = (call); call_error != cudaSuccess) { \
      return ::longview::kernels::cuda::ToStatus(call_error);               \
    }                                                                       \
  } while (false)
