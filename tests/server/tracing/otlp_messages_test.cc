#include "server/tracing/otlp_messages.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "tests/server/tracing/traces.h"

namespace longview::server {
namespace {

using opentelemetry::proto::trace::v1::Span;
using opentelemetry::proto::trace::v1::Status;

std::string TextOf(const Span& span, const std::string& key) {
  for (const auto& attribute : span.attributes()) {
    if (attribute.key() == key) return attribute.value().string_value();
  }
  return "(none)";
}

TEST(OtlpMessagesTest, PartsAreChildrenOfTheServerSpanWhichContinuesItsCaller) {
  const CallTrace trace = ExampleTrace();
  const auto request = ToOtlp({&trace, 1}, "1.2.3");
  ASSERT_EQ(request.resource_spans_size(), 1);
  std::map<std::string, std::string> resource;
  for (const auto& attribute : request.resource_spans(0).resource().attributes()) {
    resource[attribute.key()] = attribute.value().string_value();
  }
  EXPECT_EQ(resource["service.name"], "longview");
  EXPECT_EQ(resource["service.version"], "1.2.3");

  const auto& spans = request.resource_spans(0).scope_spans(0).spans();
  ASSERT_EQ(spans.size(), NumSpans(trace));
  ASSERT_EQ(spans.size(), 3);
  const Span& server = spans[0];
  EXPECT_EQ(server.kind(), Span::SPAN_KIND_SERVER);
  EXPECT_EQ(server.name(), "Classify");
  EXPECT_EQ(absl::BytesToHexString(server.trace_id()), trace.trace_id);
  EXPECT_EQ(absl::BytesToHexString(server.span_id()), trace.span_id);
  EXPECT_EQ(absl::BytesToHexString(server.parent_span_id()), trace.parent_id);
  EXPECT_EQ(server.flags(), 0x301u);
  EXPECT_EQ(server.start_time_unix_nano(), 1'000'000'000u);
  EXPECT_EQ(server.end_time_unix_nano(), 5'000'000'000u);
  EXPECT_EQ(TextOf(server, "longview.model"), "m");
  EXPECT_EQ(TextOf(server, "longview.request_id"), "r1");
  EXPECT_EQ(TextOf(server, "longview.code"), "OK");
  EXPECT_EQ(server.status().code(), Status::STATUS_CODE_UNSET);

  std::set<std::string> ids = {server.span_id()};
  for (int i = 1; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].parent_span_id(), server.span_id());
    EXPECT_EQ(spans[i].trace_id(), server.trace_id());
    EXPECT_EQ(spans[i].kind(), Span::SPAN_KIND_INTERNAL);
    EXPECT_EQ(spans[i].span_id().size(), 8u);
    EXPECT_TRUE(ids.insert(spans[i].span_id()).second);
  }
  EXPECT_EQ(spans[1].name(), "prepare");
  EXPECT_EQ(spans[2].name(), "compute");
  EXPECT_EQ(spans[2].start_time_unix_nano(), 3'000'000'000u);
}

TEST(OtlpMessagesTest, OnlyTheServersFaultsAreErrors) {
  for (const auto& [code, error] : {std::pair{absl::StatusCode::kInternal, true},
                                    {absl::StatusCode::kDeadlineExceeded, true},
                                    {absl::StatusCode::kUnavailable, true},
                                    {absl::StatusCode::kInvalidArgument, false},
                                    {absl::StatusCode::kResourceExhausted, false}}) {
    CallTrace trace = ExampleTrace();
    trace.code = code;
    const auto request = ToOtlp({&trace, 1}, "1");
    const Span& server = request.resource_spans(0).scope_spans(0).spans(0);
    EXPECT_EQ(server.status().code() == Status::STATUS_CODE_ERROR, error) << code;
    EXPECT_EQ(TextOf(server, "longview.code"), absl::StatusCodeToString(code));
  }
}

TEST(OtlpMessagesTest, ARootHasNoParent) {
  CallTrace trace = ExampleTrace();
  trace.parent_id.clear();
  const auto request = ToOtlp({&trace, 1}, "1");
  const Span& server = request.resource_spans(0).scope_spans(0).spans(0);
  EXPECT_TRUE(server.parent_span_id().empty());
  EXPECT_EQ(server.flags(), 0x101u);
}

}  // namespace
}  // namespace longview::server
