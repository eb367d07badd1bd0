// Samples calls for tracing and exports their spans to a collector.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/call.h"
#include "server/tracing/call_spans.h"

namespace longview::server {

struct TracerOptions {
  std::string endpoint;       // host:port, with http:// or https:// (TLS) before it or without.
  double sample_ratio = 1;    // Share of calls whose caller sent no traceparent.
  std::string version;        // The service's version.
  size_t max_waiting = 2048;  // Calls whose spans wait for the collector.
};

struct TracerCounts {
  uint64_t exported = 0;  // Spans that the collector took.
  uint64_t dropped = 0;   // Spans that found the queue full, or that it refused.
};

// Sends what it is given from a thread of its own. Thread-safe.
class Tracer {
 public:
  explicit Tracer(TracerOptions options);
  // Tries once more, for a second, to send what waits. Calls that it traces are over by then.
  ~Tracer();

  // Decides at the call's begin: as its caller decided, if it sent a traceparent, else by the
  // ratio. A traced call gets its spans, and the ids of its trace if it had none.
  void Trace(CallInfo& info);

  TracerCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longview::server
