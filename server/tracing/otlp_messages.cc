#include "server/tracing/otlp_messages.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace longview::server {
namespace {

using opentelemetry::proto::trace::v1::Span;
using opentelemetry::proto::trace::v1::Status;

constexpr char kService[] = "longview";
constexpr std::array<const char*, kCallParts> kPartNames = {"prepare", "queue", "compute",
                                                            "stream"};
// Flags of a span: the trace is sampled; whether the parent is remote is known; it is.
constexpr uint32_t kSampled = 0x1;
constexpr uint32_t kParentKnown = 0x100;
constexpr uint32_t kParentRemote = 0x200;

std::string Bytes(const std::string& digits) { return absl::HexStringToBytes(digits); }

// The id of a part's span: another for each, and the same whenever the trace is written.
std::string PartId(const CallTrace& trace, size_t part) {
  std::string id = Bytes(trace.span_id);
  id.back() = static_cast<char>(id.back() ^ static_cast<char>(part + 1));
  if (std::all_of(id.begin(), id.end(), [](char c) { return c == 0; })) id.front() = 1;
  return id;
}

template <typename Message>
void AddText(Message& message, const char* key, std::string_view value) {
  if (value.empty()) return;
  auto& attribute = *message.add_attributes();
  attribute.set_key(key);
  attribute.mutable_value()->set_string_value(std::string(value));
}

void AddNumber(Span& span, const char* key, int64_t value) {
  if (value == 0) return;
  auto& attribute = *span.add_attributes();
  attribute.set_key(key);
  attribute.mutable_value()->set_int_value(value);
}

void SetTimes(const SpanTimes& times, Span& span) {
  span.set_start_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(times.begin)));
  span.set_end_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(times.end)));
}

// Only the server's own faults count as errors of a server span.
bool IsServerError(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

void WriteServerSpan(const CallTrace& trace, Span& span) {
  span.set_span_id(Bytes(trace.span_id));
  span.set_parent_span_id(Bytes(trace.parent_id));
  span.set_flags(kSampled | kParentKnown | (trace.parent_id.empty() ? 0 : kParentRemote));
  span.set_name(std::string(trace.method));
  span.set_kind(Span::SPAN_KIND_SERVER);
  SetTimes(trace.whole, span);
  const bool grpc = trace.api == "grpc";
  AddText(span, grpc ? "rpc.system" : "network.protocol.name", trace.api);
  AddText(span, grpc ? "rpc.method" : "http.route", trace.method);
  const std::string code = absl::StatusCodeToString(trace.code);
  AddText(span, "longview.code", code);
  AddText(span, "longview.request_id", trace.request_id);
  AddText(span, "longview.model", trace.model);
  AddText(span, "longview.version", trace.version);
  AddNumber(span, "longview.items", trace.items);
  AddNumber(span, "longview.tokens", trace.tokens);
  AddNumber(span, "longview.pixels", trace.pixels);
  if (IsServerError(trace.code)) span.mutable_status()->set_code(Status::STATUS_CODE_ERROR);
}

}  // namespace

int NumSpans(const CallTrace& trace) {
  return 1 + static_cast<int>(std::count_if(trace.parts.begin(), trace.parts.end(),
                                            [](const SpanTimes& part) { return part.noted(); }));
}

opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest ToOtlp(
    std::span<const CallTrace> traces, const std::string& version) {
  opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest request;
  auto& resource = *request.add_resource_spans();
  AddText(*resource.mutable_resource(), "service.name", kService);
  AddText(*resource.mutable_resource(), "service.version", version);
  auto& scope = *resource.add_scope_spans();
  scope.mutable_scope()->set_name(kService);
  scope.mutable_scope()->set_version(version);
  for (const CallTrace& trace : traces) {
    Span& server = *scope.add_spans();
    server.set_trace_id(Bytes(trace.trace_id));
    WriteServerSpan(trace, server);
    for (size_t i = 0; i < trace.parts.size(); ++i) {
      if (!trace.parts[i].noted()) continue;
      Span& part = *scope.add_spans();
      part.set_trace_id(Bytes(trace.trace_id));
      part.set_span_id(PartId(trace, i));
      part.set_parent_span_id(Bytes(trace.span_id));
      part.set_flags(kSampled | kParentKnown);
      part.set_name(kPartNames[i]);
      part.set_kind(Span::SPAN_KIND_INTERNAL);
      SetTimes(trace.parts[i], part);
    }
  }
  return request;
}

}  // namespace longview::server
