// The CUDA plugin's (longview_cuda.so) interface: one table of functions over plain data, found by
// one exported name. The server is built without a toolkit and links nothing of CUDA; plugin.h
// loads the library where a driver and a device are there.
//
// Every function returns a Status: 0, or CUDA's own error number, which `error_text` explains.
// After an error of a kernel the device is lost to the process: all later calls return it too.
//
// Threads: a Stream, an Event and a Graph belong to one thread at a time; functions without one of
// these may be called by any thread. Work handed to a stream runs in order and later: memory it
// names must live until the stream, or an event recorded behind it, is done.
//
// Both sides come from one build: `abi` and `bytes` refuse a plugin of another.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/cuda/common_rows/rows_api.h"
#include "kernels/cuda/decoder_rows/token_api.h"
#include "kernels/cuda/encoder_rows/encoder_api.h"
#include "kernels/cuda/linear_attention/outer_api.h"
#include "kernels/cuda/pool/pool_api.h"
#include "kernels/cuda/sampling/sampling_api.h"
#include "kernels/cuda/span/span_api.h"
#include "kernels/cuda/vision/maps_api.h"
#include "kernels/cuda/vision/performer_api.h"

namespace longview::kernels::cuda {

inline constexpr uint32_t kPluginAbi = 1;
inline constexpr char kPluginSymbol[] = "LongviewCudaPlugin";

inline constexpr int kDeviceNameBytes = 128;

struct DeviceProperties {
  char name[kDeviceNameBytes];
  int32_t major;  // Compute capability.
  int32_t minor;
  int32_t multiprocessors;
  int32_t shared_bytes_per_block;  // The most one block may ask for.
  int64_t memory_bytes;
  int64_t l2_bytes;
};

struct PluginApi {
  uint32_t abi;    // kPluginAbi.
  uint32_t bytes;  // sizeof(PluginApi).

  // Static text of an error.
  const char* (*error_text)(Status status);

  // ---- Devices ----
  // 0 devices where there is no driver or it sees none: no error.
  Status (*device_count)(int32_t* count);
  Status (*device_properties)(int32_t device, DeviceProperties* properties);
  Status (*free_memory)(int32_t device, uint64_t* free_bytes);

  // ---- Memory. Asked for when a model loads, never while it runs. ----
  Status (*allocate)(int32_t device, uint64_t bytes, void** memory);  // 256-byte aligned.
  Status (*release)(int32_t device, void* memory);
  // Host memory that devices copy from and to while they compute.
  Status (*allocate_pinned)(uint64_t bytes, void** memory);
  Status (*release_pinned)(void* memory);

  // ---- Streams ----
  Status (*create_stream)(int32_t device, Stream** stream);
  // The stream of a library, a cudaStream_t, which stays the library's.
  Status (*adopt_stream)(int32_t device, void* native, Stream** stream);
  Status (*destroy_stream)(Stream* stream);  // Waits for its work.
  Status (*synchronize)(Stream* stream);
  void* (*native_stream)(Stream* stream);  // A cudaStream_t, for libraries that take one.
  // Host sides are pinned.
  Status (*copy_in)(Stream* stream, void* to_device, const void* from_host, uint64_t bytes);
  Status (*copy_out)(Stream* stream, void* to_host, const void* from_device, uint64_t bytes);
  Status (*copy)(Stream* stream, void* to_device, const void* from_device, uint64_t bytes);
  Status (*fill_zero)(Stream* stream, void* device_memory, uint64_t bytes);

  // ---- Events ----
  Status (*create_event)(int32_t device, Event** event);
  Status (*destroy_event)(Event* event);
  Status (*record)(Stream* stream, Event* event);
  Status (*wait)(Stream* stream, Event* event);  // The stream waits, the host does not.
  Status (*event_done)(Event* event, int32_t* done);
  Status (*synchronize_event)(Event* event);  // The host waits.
  Status (*milliseconds)(Event* begin, Event* end, float* elapsed);

  // ---- Graphs. Between the two calls the stream records what it is handed and runs nothing. ----
  Status (*begin_recording)(Stream* stream);
  Status (*end_recording)(Stream* stream, Graph** graph);
  Status (*launch_graph)(Stream* stream, Graph* graph);
  Status (*destroy_graph)(Graph* graph);

  // ---- Kernels ----
  RowsApi rows;
  PoolApi pool;
  SpanApi span;
  OuterApi outer;
  PerformerApi performer;
  MapsApi maps;
  TokenApi token;
  EncoderApi encoder;
  SamplingApi sampling;
};

// The type of the exported function.
using PluginEntry = const PluginApi* (*)();

}  // namespace longview::kernels::cuda
