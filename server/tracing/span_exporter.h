// Sends traces of calls to a collector: OTLP over gRPC, in batches, from a thread of its own.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/tracing/call_spans.h"
#include "server/tracing/tracer.h"

namespace longview::server {

// Thread-safe. A collector that is slow, away or refuses costs dropped spans and nothing else.
class SpanExporter final : public TraceSink {
 public:
  explicit SpanExporter(TracerOptions options);
  ~SpanExporter() override;

  // Drops and counts the trace if `max_waiting` wait.
  void Add(CallTrace trace) override;

  TracerCounts counts() const { return {exported_.load(), dropped_.load()}; }

 private:
  using Collector = opentelemetry::proto::collector::trace::v1::TraceService;

  void Loop();
  // The next traces to send, after a while of collecting; none once the exporter ends.
  std::vector<CallTrace> Next();
  void Send(std::vector<CallTrace> traces);
  // Waits before the next attempt, until the exporter ends.
  void Rest(absl::Duration time);

  const TracerOptions options_;
  const std::unique_ptr<Collector::Stub> collector_;
  std::atomic<uint64_t> exported_{0};
  std::atomic<uint64_t> dropped_{0};
  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;
  std::deque<CallTrace> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time last_deadline_ ABSL_GUARDED_BY(mutex_);  // Deadline of sending, once it ends.
  std::shared_ptr<grpc::ClientContext> sending_ ABSL_GUARDED_BY(mutex_);  // Null = none.
  std::thread thread_;
};

}  // namespace longview::server
