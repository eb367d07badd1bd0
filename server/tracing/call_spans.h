// The times of one traced call's parts, noted by the code that works on it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace longview::server {

// The parts of a call, each at most one span. Of a call with several items a part lasts from the
// first item's begin to the last one's end.
enum class CallPart { kPrepare, kQueue, kCompute, kStream };
inline constexpr int kCallParts = 4;

struct SpanTimes {
  absl::Time begin = absl::InfiniteFuture();
  absl::Time end = absl::InfinitePast();
  bool noted() const { return begin <= end; }
};

// A call that is over, as its spans tell it. Holds names, ids, counts and times, never content.
struct CallTrace {
  std::string trace_id;   // 32 hexadecimal digits.
  std::string span_id;    // 16; of the server span.
  std::string parent_id;  // 16; empty if the trace begins here.
  std::string request_id;
  std::string_view api;     // Static storage, as in CallInfo.
  std::string_view method;  // Static storage, as in CallInfo.
  std::string model;
  std::string version;
  absl::StatusCode code = absl::StatusCode::kOk;
  int items = 0;
  int64_t tokens = 0;
  int64_t pixels = 0;
  SpanTimes whole;
  std::array<SpanTimes, kCallParts> parts;
};

// Takes the traces of calls. Thread-safe; must not block.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void Add(CallTrace trace) = 0;
};

// Thread-safe. Only calls that are traced have one; it outlives the call's work in the engine.
class CallSpans {
 public:
  // Borrows the sink. `trace` brings the ids and the begin of the whole.
  CallSpans(TraceSink& sink, CallTrace trace) : sink_(sink), trace_(std::move(trace)) {}

  // The second and later begins of a part are those of other items.
  void Begin(CallPart part, absl::Time time);
  // Ignored without a begin.
  void End(CallPart part, absl::Time time);

  // The call is over: parts that still last end with it, and the trace goes to the sink. `complete`
  // fills in what is known only now. Once; everything after it goes nowhere.
  template <typename Complete>
  void Finish(absl::Time end, Complete complete) {
    absl::MutexLock lock(&mutex_);
    if (finished_) return;
    finished_ = true;
    complete(trace_);
    Close(end);
    sink_.Add(std::move(trace_));
  }

 private:
  void Close(absl::Time end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TraceSink& sink_;
  absl::Mutex mutex_;
  CallTrace trace_ ABSL_GUARDED_BY(mutex_);
  std::array<int, kCallParts> open_ ABSL_GUARDED_BY(mutex_) = {};
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace longview::server
