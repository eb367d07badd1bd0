#include "tests/kernels/cuda/support/emulated_plugin.h"

#include <cstdlib>
#include <cstring>

#include "kernels/cuda/common_rows/rows_table.h"
#include "kernels/cuda/decoder_rows/token_table.h"
#include "kernels/cuda/encoder_rows/encoder_table.h"
#include "kernels/cuda/linear_attention/outer_program.h"
#include "kernels/cuda/pool/pool_programs.h"
#include "kernels/cuda/sampling/sample_program.h"
#include "kernels/cuda/vision/maps_table.h"
#include "kernels/cuda/vision/performer_programs.h"
#include "tests/kernels/cuda/support/emulated_span.h"
#include "tests/kernels/cuda/support/emulated_stream.h"

namespace longview::kernels::cuda::testing {
namespace {

// Memory as a device gives it: aligned, and full of numbers that spoil a result.
Status Allocate(int32_t, uint64_t bytes, void** memory) {
  const uint64_t size = (bytes + 255) / 256 * 256;
  *memory = std::aligned_alloc(256, size == 0 ? 256 : size);
  if (*memory == nullptr) return 2;
  std::memset(*memory, 0x7f, size);
  return 0;
}

Status Release(int32_t, void* memory) {
  std::free(memory);
  return 0;
}

Status Copy(Stream* stream, void* to, const void* from, uint64_t bytes) {
  return HandOver(stream, [=] {
    if (bytes > 0) std::memmove(to, from, bytes);
  });
}

template <ThreadOrder kOrder>
struct HostRunner {
  template <typename Program>
  static Status Run(Stream* stream, const typename Program::Args& args) {
    return HandOver(stream, [args] { RunOnHost<Program>(args, kOrder); });
  }
};

// A call travels by value, as a kernel's parameter does.
template <ThreadOrder kOrder, auto kCall>
Status RunSpan(Stream* stream, const PlanView* plan, const SpanCall* call,
               const SpanLaunch* launch) {
  return HandOver(stream, [plan = *plan, call = *call, launch = *launch] {
    const SpanApi api = EmulatedSpanApi(kOrder);
    (void)(api.*kCall)(nullptr, &plan, &call, &launch);
  });
}

template <ThreadOrder kOrder>
PluginApi MakePlugin() {
  PluginApi api = {};
  api.abi = kPluginAbi;
  api.bytes = sizeof(PluginApi);
  api.error_text = [](Status) { return "out of memory"; };
  api.device_count = [](int32_t* count) -> Status {
    *count = 1;
    return 0;
  };
  api.free_memory = [](int32_t, uint64_t* free_bytes) -> Status {
    *free_bytes = uint64_t{1} << 34;
    return 0;
  };
  api.allocate = Allocate;
  api.release = Release;
  api.allocate_pinned = [](uint64_t bytes, void** memory) { return Allocate(0, bytes, memory); };
  api.release_pinned = [](void* memory) { return Release(0, memory); };
  FillStreams(api);
  api.copy_in = api.copy_out = api.copy = Copy;
  api.fill_zero = [](Stream* stream, void* memory, uint64_t bytes) {
    return HandOver(stream, [=] {
      if (bytes > 0) std::memset(memory, 0, bytes);
    });
  };
  using Runner = HostRunner<kOrder>;
  api.rows = RowsTable<Runner>();
  api.pool = PoolTable<Runner>();
  api.outer = OuterTable<Runner>();
  api.performer = PerformerTable<Runner>();
  api.maps = MapsTable<Runner>();
  api.sampling = {.sample = Runner::template Run<SampleProgram>};
  api.token = TokenTable<Runner>();
  api.encoder = EncoderTable<Runner>();
  api.span = EmulatedSpanApi(kOrder);
  api.span.forward = RunSpan<kOrder, &SpanApi::forward>;
  api.span.merge = RunSpan<kOrder, &SpanApi::merge>;
  return api;
}

}  // namespace

const PluginApi& EmulatedPlugin(ThreadOrder order) {
  static const PluginApi rising = MakePlugin<ThreadOrder::kRising>();
  static const PluginApi falling = MakePlugin<ThreadOrder::kFalling>();
  return order == ThreadOrder::kRising ? rising : falling;
}

}  // namespace longview::kernels::cuda::testing
