#include "tests/kernels/cuda/support/twin.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/cuda/outer/outer_program.h"
#include "kernels/cuda/pool/pool_programs.h"
#include "kernels/cuda/rows/column_programs.h"
#include "kernels/cuda/rows/fold_programs.h"
#include "kernels/cuda/rows/norm_program.h"
#include "kernels/cuda/sampling/sample_program.h"
#include "kernels/cuda/token/cache_programs.h"
#include "kernels/cuda/token/product_programs.h"
#include "kernels/cuda/token/stream_programs.h"
#include "kernels/cuda/vision/performer_programs.h"
#include "tests/kernels/cuda/support/emulated_span.h"

namespace longview::kernels::cuda {

// Work is done when it is handed over, or kept while the stream records.
struct Stream {
  std::vector<std::function<void()>> recorded;
  bool recording = false;
};
struct Graph {
  std::vector<std::function<void()>> work;
};
struct Event {};

namespace testing {
namespace {

Event host_event;

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

Status HandOver(Stream* stream, std::function<void()> work) {
  if (stream->recording) {
    stream->recorded.push_back(std::move(work));
  } else {
    work();
  }
  return 0;
}

Status CreateStream(Stream** stream) {
  *stream = new Stream();
  return 0;
}

Status DestroyStream(Stream* stream) {
  delete stream;
  return 0;
}

// As CUDA's: who waits for a stream that records spoils the recording.
Status Synchronize(Stream* stream) { return stream->recording ? 900 : 0; }

Status Copy(Stream* stream, void* to, const void* from, uint64_t bytes) {
  return HandOver(stream, [=] {
    if (bytes > 0) std::memmove(to, from, bytes);
  });
}

Status BeginRecording(Stream* stream) {
  stream->recording = true;
  stream->recorded.clear();
  return 0;
}

Status EndRecording(Stream* stream, Graph** graph) {
  stream->recording = false;
  *graph = new Graph{std::move(stream->recorded)};
  return 0;
}

Status LaunchGraph(Stream* stream, Graph* graph) {
  for (const auto& work : graph->work) HandOver(stream, work);
  return 0;
}

Status DestroyGraph(Graph* graph) {
  delete graph;
  return 0;
}

template <typename Program, ThreadOrder kOrder>
Status Run(Stream* stream, const typename Program::Args& args) {
  return HandOver(stream, [args] { RunOnHost<Program>(args, kOrder); });
}

// A call travels by value, as a kernel's parameter does.
template <ThreadOrder kOrder, auto kCall>
Status RunSpan(Stream* stream, const PlanView* plan, const SpanCall* call,
               const SpanLaunch* launch) {
  return HandOver(stream, [plan = *plan, call = *call, launch = *launch] {
    const SpanApi api = EmulatedSpanApi(kOrder);
    (void)(api.*kCall)(nullptr, &plan, &call, &launch);
  });
}

// The program of T = float or bfloat16, by dtype_of(args).
template <template <typename> typename Program, ThreadOrder kOrder, auto kTypeOf>
Status RunTyped(Stream* stream, const typename Program<float>::Args& args) {
  return kTypeOf(args) == DType::kFloat32 ? Run<Program<float>, kOrder>(stream, args)
                                          : Run<Program<BFloat16>, kOrder>(stream, args);
}

constexpr auto kOwnType = [](const auto& args) { return args.dtype; };
constexpr auto kRowsType = [](const auto& args) { return args.rows.dtype; };

template <typename T>
using EmbedProgram = NormProgram<EmbedRows, T>;
template <typename T>
using ResidualProgram = NormProgram<ResidualRows, T>;
template <typename T>
using BiasProgram = ElementProgram<BiasElements<T>>;
template <typename T>
using WidenProgram = ElementProgram<WidenElements<T>>;

template <typename T>
using StreamNormProgram = NormProgram<StreamRows, T>;
template <typename T>
using StreamProgram = ElementProgram<StreamElements<T>>;
template <typename T>
using StoreProgram = ElementProgram<StoreElements<T>>;

template <ThreadOrder kOrder>
Status RunStream(Stream* stream, const StreamRows& args) {
  return args.norm.gamma != nullptr ? RunTyped<StreamNormProgram, kOrder, kOwnType>(stream, args)
                                    : RunTyped<StreamProgram, kOrder, kOwnType>(stream, args);
}

template <typename T, ThreadOrder kOrder>
Status RunPerformerTyped(Stream* stream, const PerformerRows& args) {
  Run<PerformerTopsProgram<T>, kOrder>(stream, args);
  Run<PerformerKeysProgram<T>, kOrder>(stream, args);
  return Run<PerformerQueriesProgram<T>, kOrder>(stream, args);
}

template <ThreadOrder kOrder>
Status RunPerformerRows(Stream* stream, const PerformerRows& args) {
  return args.dtype == DType::kFloat32 ? RunPerformerTyped<float, kOrder>(stream, args)
                                       : RunPerformerTyped<BFloat16, kOrder>(stream, args);
}

template <ThreadOrder kOrder>
PluginApi MakeTwin() {
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
  api.create_stream = [](int32_t, Stream** stream) { return CreateStream(stream); };
  api.adopt_stream = [](int32_t, void*, Stream** stream) { return CreateStream(stream); };
  api.destroy_stream = DestroyStream;
  api.synchronize = Synchronize;
  api.native_stream = [](Stream*) -> void* { return nullptr; };
  api.copy_in = api.copy_out = api.copy = Copy;
  api.fill_zero = [](Stream* stream, void* memory, uint64_t bytes) {
    return HandOver(stream, [=] {
      if (bytes > 0) std::memset(memory, 0, bytes);
    });
  };
  api.begin_recording = BeginRecording;
  api.end_recording = EndRecording;
  api.launch_graph = LaunchGraph;
  api.destroy_graph = DestroyGraph;
  // Everything has happened when it is asked for.
  api.create_event = [](int32_t, Event** event) -> Status {
    *event = &host_event;
    return 0;
  };
  api.destroy_event = api.synchronize_event = [](Event*) -> Status { return 0; };
  api.record = api.wait = [](Stream*, Event*) -> Status { return 0; };
  api.rows = {
      .embed = RunTyped<EmbedProgram, kOrder, kOwnType>,
      .bias = RunTyped<BiasProgram, kOrder, kOwnType>,
      .widen = RunTyped<WidenProgram, kOrder, kOwnType>,
      .residual = RunTyped<ResidualProgram, kOrder, kOwnType>,
      .copy = Run<ElementProgram<CopyElements>, kOrder>,
      .fold_keys = Run<FoldKeysProgram, kOrder>,
      .fold_scores = Run<FoldScoresProgram, kOrder>,
      .fold_values = RunTyped<FoldValuesProgram, kOrder, kOwnType>,
  };
  api.pool = {
      .pieces = RunTyped<PoolPiecesProgram, kOrder, kRowsType>,
      .merge = Run<PoolMergeProgram, kOrder>,
      .append = RunTyped<PoolAppendProgram, kOrder, kRowsType>,
  };
  api.outer = {.append = Run<OuterProgram, kOrder>};
  api.performer = {.run = RunPerformerRows<kOrder>};
  api.sampling = {.sample = Run<SampleProgram, kOrder>};
  api.span = EmulatedSpanApi(kOrder);
  api.span.forward = RunSpan<kOrder, &SpanApi::forward>;
  api.span.merge = RunSpan<kOrder, &SpanApi::merge>;
  api.token = {
      .stream = RunStream<kOrder>,
      .project = RunTyped<ProjectProgram, kOrder, kOwnType>,
      .store = RunTyped<StoreProgram, kOrder, kOwnType>,
      .pages = RunTyped<PageProgram, kOrder, kOwnType>,
      .product = RunTyped<ProductProgram, kOrder, kOwnType>,
      .positions = RunTyped<PositionProgram, kOrder, kOwnType>,
  };
  return api;
}

}  // namespace

const PluginApi& HostTwin(ThreadOrder order) {
  static const PluginApi rising = MakeTwin<ThreadOrder::kRising>();
  static const PluginApi falling = MakeTwin<ThreadOrder::kFalling>();
  return order == ThreadOrder::kRising ? rising : falling;
}

}  // namespace testing
}  // namespace longview::kernels::cuda
