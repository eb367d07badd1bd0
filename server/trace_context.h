// The trace a call belongs to, as its caller says (W3C Trace Context, header `traceparent`).
#pragma once

#include <string>
#include <string_view>

namespace longview::server {

// Lower-case hexadecimal digits; empty if the caller sent none.
struct TraceContext {
  std::string trace_id;   // 32 digits.
  std::string parent_id;  // 16 digits: the caller's span.
  bool sampled = false;   // The caller records the trace.
};

// Empty for anything that is not a well-formed traceparent of a version it can read.
TraceContext ParseTraceparent(std::string_view header);

}  // namespace longview::server
