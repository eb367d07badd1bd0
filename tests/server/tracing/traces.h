// Traces for tests.
#pragma once

#include "server/tracing/call_spans.h"

namespace longview::server {

inline absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// A call from second 1 to 5 that was prepared from 1 to 2 and computed from 3 to 4.
inline CallTrace ExampleTrace() {
  CallTrace trace;
  trace.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  trace.span_id = "00f067aa0ba902b7";
  trace.parent_id = "b7ad6b7169203331";
  trace.request_id = "r1";
  trace.api = "grpc";
  trace.method = "Classify";
  trace.model = "m";
  trace.version = "1";
  trace.items = 1;
  trace.tokens = 512;
  trace.whole = {At(1), At(5)};
  trace.parts[static_cast<size_t>(CallPart::kPrepare)] = {At(1), At(2)};
  trace.parts[static_cast<size_t>(CallPart::kCompute)] = {At(3), At(4)};
  return trace;
}

}  // namespace longview::server
