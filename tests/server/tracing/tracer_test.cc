#include "server/tracing/tracer.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"

namespace longview::server {
namespace {

using opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
using opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;
using opentelemetry::proto::collector::trace::v1::TraceService;

constexpr char kTraceId[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParentId[] = "00f067aa0ba902b7";

class Collector : public TraceService::Service {
 public:
  Collector() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Collector() override { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

  grpc::Status Export(grpc::ServerContext*, const ExportTraceServiceRequest* request,
                      ExportTraceServiceResponse* response) override {
    const std::lock_guard lock(mutex_);
    if (++calls_ <= failures) return {grpc::StatusCode::UNAVAILABLE, "not yet"};
    for (const auto& resource : request->resource_spans()) {
      for (const auto& scope : resource.scope_spans()) spans_ += scope.spans_size();
    }
    response->mutable_partial_success()->set_rejected_spans(rejects);
    return grpc::Status::OK;
  }

  std::string endpoint() const { return absl::StrCat("127.0.0.1:", port_); }
  int spans() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }

  int failures = 0;  // How many first calls fail. Set before any.
  int rejects = 0;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  int calls_ = 0;
  int spans_ = 0;
};

CallInfo Call(bool with_parent, bool sampled) {
  CallInfo info;
  info.arrival = absl::Now();
  info.api = "http";
  info.method = "/v1/classify";
  if (with_parent) info.trace = {kTraceId, kParentId, sampled};
  return info;
}

void Finish(const CallInfo& info) {
  info.spans->Finish(absl::Now(), [](CallTrace&) {});
}

template <typename Condition>
bool Eventually(Condition condition) {
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (absl::Now() < end) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return false;
}

TEST(TracerTest, TheCallersDecisionCountsElseTheRatio) {
  Tracer never({.endpoint = "127.0.0.1:1", .sample_ratio = 0, .version = "1"});
  Tracer always({.endpoint = "127.0.0.1:1", .sample_ratio = 1, .version = "1"});
  for (Tracer* tracer : {&never, &always}) {
    CallInfo sampled = Call(true, true);
    tracer->Trace(sampled);
    EXPECT_NE(sampled.spans, nullptr);
    CallInfo unsampled = Call(true, false);
    tracer->Trace(unsampled);
    EXPECT_EQ(unsampled.spans, nullptr);
    EXPECT_EQ(sampled.trace.trace_id, kTraceId);
  }
  CallInfo root = Call(false, false);
  never.Trace(root);
  EXPECT_EQ(root.spans, nullptr);
  EXPECT_TRUE(root.trace.trace_id.empty());
  always.Trace(root);
  EXPECT_NE(root.spans, nullptr);
  EXPECT_EQ(root.trace.trace_id.size(), 32u);
  EXPECT_TRUE(root.trace.parent_id.empty());
}

TEST(TracerTest, TheRatioIsAShareOfTheCalls) {
  Tracer tracer({.endpoint = "127.0.0.1:1", .sample_ratio = 0.25, .version = "1"});
  int traced = 0;
  for (int i = 0; i < 4000; ++i) {
    CallInfo info = Call(false, false);
    tracer.Trace(info);
    traced += info.spans != nullptr;
  }
  EXPECT_GT(traced, 800);
  EXPECT_LT(traced, 1200);
}

TEST(TracerTest, SpansReachTheCollectorAlsoAfterItWasAway) {
  Collector collector;
  collector.failures = 1;
  Tracer tracer({.endpoint = collector.endpoint(), .sample_ratio = 1, .version = "1"});
  for (int i = 0; i < 10; ++i) {
    CallInfo info = Call(true, true);
    tracer.Trace(info);
    info.spans->Begin(CallPart::kCompute, absl::Now());
    Finish(info);
  }
  EXPECT_TRUE(Eventually([&] { return collector.spans() == 20; })) << collector.spans();
  EXPECT_TRUE(Eventually([&] { return tracer.counts().exported == 20; }));
  EXPECT_EQ(tracer.counts().dropped, 0u);
}

TEST(TracerTest, WhatTheCollectorRejectsIsCounted) {
  Collector collector;
  collector.rejects = 1;
  Tracer tracer({.endpoint = collector.endpoint(), .sample_ratio = 1, .version = "1"});
  for (int i = 0; i < 3; ++i) {
    CallInfo info = Call(true, true);
    tracer.Trace(info);
    Finish(info);
  }
  EXPECT_TRUE(Eventually([&] { return tracer.counts().exported + tracer.counts().dropped == 3; }));
  EXPECT_GE(tracer.counts().dropped, 1u);
}

TEST(TracerTest, ACollectorThatIsAwayCostsSpansAndHoldsUpNobody) {
  Tracer tracer({.endpoint = "127.0.0.1:1", .sample_ratio = 1, .version = "1", .max_waiting = 100});
  for (int i = 0; i < 1000; ++i) {
    CallInfo info = Call(false, false);
    tracer.Trace(info);
    Finish(info);
  }
  EXPECT_GE(tracer.counts().dropped, 700u);
  EXPECT_EQ(tracer.counts().exported, 0u);
}

TEST(TracerTest, WhatWaitsLeavesAtTheEnd) {
  Collector collector;
  {
    Tracer tracer({.endpoint = collector.endpoint(), .sample_ratio = 1, .version = "1"});
    CallInfo info = Call(false, false);
    tracer.Trace(info);
    Finish(info);
  }
  EXPECT_EQ(collector.spans(), 1);
}

}  // namespace
}  // namespace longview::server
