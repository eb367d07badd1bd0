// Traces of calls as OpenTelemetry's protocol writes them.
#pragma once

#include <span>
#include <string>

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "server/tracing/call_spans.h"

namespace longview::server {

// The server span and one for every part that was noted.
int NumSpans(const CallTrace& trace);

// A message with all spans of the traces, of the service `longview` in this version.
opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest ToOtlp(
    std::span<const CallTrace> traces, const std::string& version);

}  // namespace longview::server
