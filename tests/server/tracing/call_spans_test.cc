#include "server/tracing/call_spans.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/server/tracing/traces.h"

namespace longview::server {
namespace {

class Sink : public TraceSink {
 public:
  void Add(CallTrace trace) override { traces.push_back(std::move(trace)); }
  std::vector<CallTrace> traces;
};

SpanTimes Part(const CallTrace& trace, CallPart part) {
  return trace.parts[static_cast<size_t>(part)];
}

CallTrace Begun() {
  CallTrace trace;
  trace.whole.begin = At(0);
  return trace;
}

TEST(CallSpansTest, APartLastsFromTheFirstItemToTheLast) {
  Sink sink;
  CallSpans spans(sink, Begun());
  spans.Begin(CallPart::kCompute, At(2));
  spans.Begin(CallPart::kCompute, At(1));
  spans.End(CallPart::kCompute, At(5));
  spans.End(CallPart::kCompute, At(4));
  spans.Finish(At(9), [](CallTrace& trace) { trace.items = 2; });
  ASSERT_EQ(sink.traces.size(), 1u);
  EXPECT_EQ(Part(sink.traces[0], CallPart::kCompute).begin, At(1));
  EXPECT_EQ(Part(sink.traces[0], CallPart::kCompute).end, At(5));
  EXPECT_EQ(sink.traces[0].whole.end, At(9));
  EXPECT_EQ(sink.traces[0].items, 2);
  EXPECT_FALSE(Part(sink.traces[0], CallPart::kQueue).noted());
}

TEST(CallSpansTest, WhatStillLastsEndsWithTheCall) {
  Sink sink;
  CallSpans spans(sink, Begun());
  spans.Begin(CallPart::kQueue, At(1));
  spans.Begin(CallPart::kQueue, At(1));
  spans.End(CallPart::kQueue, At(2));
  spans.Finish(At(7), [](CallTrace&) {});
  EXPECT_EQ(Part(sink.traces[0], CallPart::kQueue).end, At(7));
}

TEST(CallSpansTest, EndsWithoutABeginAndLateNotesAreIgnored) {
  Sink sink;
  CallSpans spans(sink, Begun());
  spans.End(CallPart::kCompute, At(1));
  spans.Finish(At(2), [](CallTrace&) {});
  spans.Begin(CallPart::kStream, At(3));
  spans.End(CallPart::kCompute, At(3));
  spans.Finish(At(4), [](CallTrace&) {});
  ASSERT_EQ(sink.traces.size(), 1u);
  for (const SpanTimes& part : sink.traces[0].parts) EXPECT_FALSE(part.noted());
}

}  // namespace
}  // namespace longview::server
