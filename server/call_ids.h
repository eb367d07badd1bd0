// The ids of a call: that of its request, and the trace it belongs to.
#pragma once

#include <string>
#include <string_view>

namespace longview::server {

// The caller's x-request-id or one of ours: `given` if it is 1 to 128 visible ASCII characters,
// else 32 random hexadecimal digits. Thread-safe.
std::string RequestIdOr(std::string_view given);

// The trace a call belongs to, as its caller says (W3C Trace Context, header `traceparent`).
// Lower-case hexadecimal digits; empty if the caller sent none.
struct TraceContext {
  std::string trace_id;   // 32 digits.
  std::string parent_id;  // 16 digits: the caller's span.
  bool sampled = false;   // The caller records the trace.
};

// Empty for anything that is not a well-formed traceparent of a version it can read.
TraceContext ParseTraceparent(std::string_view header);

}  // namespace longview::server
