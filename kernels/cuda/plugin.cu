// The plugin's table: devices, memory, streams, events and graphs over the CUDA runtime.
#include "kernels/cuda/plugin_api.h"

#include <cuda_runtime.h>

#include <cstring>
#include <new>

#include "kernels/cuda/base/checked.cuh"
#include "kernels/cuda/base/plugin_tables.cuh"

namespace longview::kernels::cuda {

struct Event {
  int device = 0;
  cudaEvent_t event = nullptr;
};

struct Graph {
  cudaGraphExec_t graph = nullptr;
};

namespace {

const char* ErrorText(Status status) {
  return cudaGetErrorString(static_cast<cudaError_t>(status));
}

Status DeviceCount(int32_t* count) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  *count = error == cudaSuccess ? devices : 0;
  const Status status = ToStatus(error);
  return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ? 0 : status;
}

Status GetDeviceProperties(int32_t device, DeviceProperties* properties) {
  cudaDeviceProp found;
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&found, device));
  *properties = {};
  const size_t length = strnlen(found.name, kDeviceNameBytes - 1);
  std::memcpy(properties->name, found.name, length);
  properties->major = found.major;
  properties->minor = found.minor;
  properties->multiprocessors = found.multiProcessorCount;
  properties->shared_bytes_per_block = static_cast<int32_t>(found.sharedMemPerBlockOptin);
  properties->memory_bytes = static_cast<int64_t>(found.totalGlobalMem);
  properties->l2_bytes = found.l2CacheSize;
  return 0;
}

Status FreeMemory(int32_t device, uint64_t* free_bytes) {
  size_t unused = 0, total = 0;
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaSetDevice(device));
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaMemGetInfo(&unused, &total));
  *free_bytes = unused;
  return 0;
}

Status Allocate(int32_t device, uint64_t bytes, void** memory) {
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaSetDevice(device));
  return ToStatus(cudaMalloc(memory, bytes));
}

Status Release(int32_t device, void* memory) {
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaSetDevice(device));
  return ToStatus(cudaFree(memory));
}

Status AllocatePinned(uint64_t bytes, void** memory) {
  // Portable: pinned for every device.
  return ToStatus(cudaHostAlloc(memory, bytes, cudaHostAllocPortable));
}

Status ReleasePinned(void* memory) { return ToStatus(cudaFreeHost(memory)); }

Status CreateStream(int32_t device, Stream** stream) {
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaSetDevice(device));
  cudaStream_t made = nullptr;
  // Non-blocking: work that a library puts on the default stream does not hold this one up.
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  *stream = new (std::nothrow) Stream{device, made};
  return *stream == nullptr ? ToStatus(cudaErrorMemoryAllocation) : 0;
}

Status AdoptStream(int32_t device, void* native, Stream** stream) {
  *stream = new (std::nothrow) Stream{device, static_cast<cudaStream_t>(native), false};
  return *stream == nullptr ? ToStatus(cudaErrorMemoryAllocation) : 0;
}

Status DestroyStream(Stream* stream) {
  if (stream == nullptr) return 0;
  const Stream held = *stream;
  delete stream;
  LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(&held));
  const cudaError_t error = cudaStreamSynchronize(held.stream);
  if (held.owned) LONGVIEW_RETURN_IF_CUDA_ERROR(cudaStreamDestroy(held.stream));
  return ToStatus(error);
}

Status Synchronize(Stream* stream) { return ToStatus(cudaStreamSynchronize(stream->stream)); }

void* NativeStream(Stream* stream) { return stream->stream; }

Status Transfer(Stream* stream, void* to, const void* from, uint64_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return 0;
  LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(stream));
  return ToStatus(cudaMemcpyAsync(to, from, bytes, kind, stream->stream));
}

Status CopyIn(Stream* stream, void* to, const void* from, uint64_t bytes) {
  return Transfer(stream, to, from, bytes, cudaMemcpyHostToDevice);
}

Status CopyOut(Stream* stream, void* to, const void* from, uint64_t bytes) {
  return Transfer(stream, to, from, bytes, cudaMemcpyDeviceToHost);
}

Status Copy(Stream* stream, void* to, const void* from, uint64_t bytes) {
  return Transfer(stream, to, from, bytes, cudaMemcpyDeviceToDevice);
}

Status FillZero(Stream* stream, void* memory, uint64_t bytes) {
  if (bytes == 0) return 0;
  LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(stream));
  return ToStatus(cudaMemsetAsync(memory, 0, bytes, stream->stream));
}

Status CreateEvent(int32_t device, Event** event) {
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaSetDevice(device));
  cudaEvent_t made = nullptr;
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaEventCreate(&made));
  *event = new (std::nothrow) Event{device, made};
  return *event == nullptr ? ToStatus(cudaErrorMemoryAllocation) : 0;
}

Status DestroyEvent(Event* event) {
  if (event == nullptr) return 0;
  const Event held = *event;
  delete event;
  return ToStatus(cudaEventDestroy(held.event));
}

Status Record(Stream* stream, Event* event) {
  LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(stream));
  return ToStatus(cudaEventRecord(event->event, stream->stream));
}

Status Wait(Stream* stream, Event* event) {
  LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(stream));
  return ToStatus(cudaStreamWaitEvent(stream->stream, event->event, 0));
}

Status EventDone(Event* event, int32_t* done) {
  const cudaError_t error = cudaEventQuery(event->event);
  *done = error == cudaSuccess;
  const Status status = ToStatus(error);
  return error == cudaErrorNotReady ? 0 : status;
}

Status SynchronizeEvent(Event* event) { return ToStatus(cudaEventSynchronize(event->event)); }

Status Milliseconds(Event* begin, Event* end, float* elapsed) {
  return ToStatus(cudaEventElapsedTime(elapsed, begin->event, end->event));
}

Status BeginRecording(Stream* stream) {
  LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(stream));
  return ToStatus(cudaStreamBeginCapture(stream->stream, cudaStreamCaptureModeThreadLocal));
}

Status EndRecording(Stream* stream, Graph** graph) {
  *graph = nullptr;
  cudaGraph_t recorded = nullptr;
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaStreamEndCapture(stream->stream, &recorded));
  cudaGraphExec_t ready = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&ready, recorded, 0);
  cudaGraphDestroy(recorded);
  LONGVIEW_RETURN_IF_CUDA_ERROR(error);
  *graph = new (std::nothrow) Graph{ready};
  return *graph == nullptr ? ToStatus(cudaErrorMemoryAllocation) : 0;
}

Status LaunchGraph(Stream* stream, Graph* graph) {
  LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(stream));
  return ToStatus(cudaGraphLaunch(graph->graph, stream->stream));
}

Status DestroyGraph(Graph* graph) {
  if (graph == nullptr) return 0;
  const Graph held = *graph;
  delete graph;
  return ToStatus(cudaGraphExecDestroy(held.graph));
}

const PluginApi kPluginApi = {
    .abi = kPluginAbi,
    .bytes = sizeof(PluginApi),
    .error_text = ErrorText,
    .device_count = DeviceCount,
    .device_properties = GetDeviceProperties,
    .free_memory = FreeMemory,
    .allocate = Allocate,
    .release = Release,
    .allocate_pinned = AllocatePinned,
    .release_pinned = ReleasePinned,
    .create_stream = CreateStream,
    .adopt_stream = AdoptStream,
    .destroy_stream = DestroyStream,
    .synchronize = Synchronize,
    .native_stream = NativeStream,
    .copy_in = CopyIn,
    .copy_out = CopyOut,
    .copy = Copy,
    .fill_zero = FillZero,
    .create_event = CreateEvent,
    .destroy_event = DestroyEvent,
    .record = Record,
    .wait = Wait,
    .event_done = EventDone,
    .synchronize_event = SynchronizeEvent,
    .milliseconds = Milliseconds,
    .begin_recording = BeginRecording,
    .end_recording = EndRecording,
    .launch_graph = LaunchGraph,
    .destroy_graph = DestroyGraph,
    .rows = kRowsApi,
    .pool = kPoolApi,
    .span = kSpanApi,
    .outer = kOuterApi,
    .performer = kPerformerApi,
    .maps = kMapsApi,
    .token = kTokenApi,
    .encoder = kEncoderApi,
    .sampling = kSamplingApi,
};

}  // namespace
}  // namespace longview::kernels::cuda

extern "C" __attribute__((visibility("default"))) const longview::kernels::cuda::PluginApi*
LongviewCudaPlugin() {
  return &longview::kernels::cuda::kPluginApi;
}
