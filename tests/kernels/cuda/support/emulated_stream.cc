#include "tests/kernels/cuda/support/emulated_stream.h"

#include <algorithm>
#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace longview::kernels::cuda {

// A task of a late stream: work, or a point of another stream to wait for.
struct Task {
  std::function<void()> work;
  Stream* other = nullptr;
  uint64_t until = 0;
};

struct Stream {
  bool recording = false;
  std::vector<std::function<void()>> recorded;

  bool late = false;
  double haste = 0;  // Chance that a late one goes on when work is handed to a stream.
  std::deque<Task> tasks;
  uint64_t done = 0;  // Tasks, as many were handed over as `done` and `tasks` say.

  uint64_t handed() const { return done + tasks.size(); }
};

// Work is not in it that the stream is handed after the recording.
struct Event {
  Stream* stream = nullptr;
  uint64_t position = 0;
};

struct Graph {
  std::vector<std::function<void()>> work;
};

namespace testing {
namespace {

std::mt19937 schedule;
std::vector<Stream*> late_streams;

// Does the stream's next task, if it waits for nobody.
bool Step(Stream* stream) {
  if (stream->tasks.empty()) return false;
  const Task& next = stream->tasks.front();
  if (next.other != nullptr && next.other->done < next.until) return false;
  const std::function<void()> work = next.work;
  stream->tasks.pop_front();
  ++stream->done;
  if (work) work();
  return true;
}

void RunUntil(Stream* stream, uint64_t position) {
  while (stream->done < position) {
    if (Step(stream)) continue;
    const Task next = stream->tasks.front();
    RunUntil(next.other, next.until);
  }
}

void LetOthersGoOn() {
  for (Stream* stream : late_streams) {
    while (std::generate_canonical<double, 32>(schedule) < stream->haste && Step(stream)) {
    }
  }
}

Status Add(Stream* stream, Task task) {
  stream->tasks.push_back(std::move(task));
  LetOthersGoOn();
  return 0;
}

Status CreateStream(int32_t, Stream** stream) {
  *stream = new Stream();
  return 0;
}

Status CreateLateStream(int32_t, Stream** stream) {
  *stream = new Stream();
  (*stream)->late = true;
  constexpr double kHastes[] = {0, 0.5, 1};
  (*stream)->haste = kHastes[schedule() % 3];
  late_streams.push_back(*stream);
  return 0;
}

Status DestroyStream(Stream* stream) {
  RunUntil(stream, stream->handed());
  std::erase(late_streams, stream);
  for (Stream* other : late_streams) {
    for (Task& task : other->tasks) {
      if (task.other == stream) task.other = nullptr;  // All of it is done.
    }
  }
  delete stream;
  return 0;
}

// CUDA's behaviour: waiting for a stream that records spoils the recording.
Status Synchronize(Stream* stream) {
  if (stream->recording) return 900;
  RunUntil(stream, stream->handed());
  return 0;
}

Status CreateEvent(int32_t, Event** event) {
  *event = new Event();
  return 0;
}

Status DestroyEvent(Event* event) {
  delete event;
  return 0;
}

// Everything has already happened on a prompt stream.
Status Record(Stream* stream, Event* event) {
  *event = stream->late ? Event{stream, stream->handed()} : Event{};
  return 0;
}

Status Wait(Stream* stream, Event* event) {
  if (event->stream == nullptr) return 0;
  if (stream->late) return Add(stream, {{}, event->stream, event->position});
  RunUntil(event->stream, event->position);
  return 0;
}

Status SynchronizeEvent(Event* event) {
  if (event->stream != nullptr) RunUntil(event->stream, event->position);
  return 0;
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

}  // namespace

Status HandOver(Stream* stream, std::function<void()> work) {
  if (stream->recording) {
    stream->recorded.push_back(std::move(work));
  } else if (stream->late) {
    return Add(stream, {std::move(work)});
  } else {
    work();
  }
  return 0;
}

void FillStreams(PluginApi& api) {
  api.create_stream = CreateStream;
  api.adopt_stream = [](int32_t device, void*, Stream** stream) {
    return CreateStream(device, stream);
  };
  api.destroy_stream = DestroyStream;
  api.synchronize = Synchronize;
  api.native_stream = [](Stream*) -> void* { return nullptr; };
  api.create_event = CreateEvent;
  api.destroy_event = DestroyEvent;
  api.record = Record;
  api.wait = Wait;
  api.synchronize_event = SynchronizeEvent;
  api.begin_recording = BeginRecording;
  api.end_recording = EndRecording;
  api.launch_graph = LaunchGraph;
  api.destroy_graph = DestroyGraph;
}

void MakeStreamsLate(PluginApi& api, uint32_t seed) {
  schedule.seed(seed);
  api.create_stream = CreateLateStream;
}

}  // namespace testing
}  // namespace longview::kernels::cuda
