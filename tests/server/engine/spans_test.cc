// The spans of a traced call: the times of its parts.
#include <memory>
#include <mutex>
#include <vector>

#include "server/tracing/call_spans.h"
#include "tests/server/engine/generation_fixture.h"

namespace longview::server {
namespace {

using testing::FakeOptions;

class SpansTest : public GenerationFixture {
 protected:
  class Sink : public TraceSink {
   public:
    void Add(CallTrace trace) override { last = std::move(trace); }
    CallTrace last;
  };

  CallInfo Traced() {
    CallInfo info = Info();
    CallTrace trace;
    trace.whole.begin = info.arrival;
    info.spans = std::make_shared<CallSpans>(sink_, std::move(trace));
    return info;
  }

  // The trace of a call that is over.
  const CallTrace& Ended(const CallInfo& info) {
    info.spans->Finish(SteadyNow(), [](CallTrace&) {});
    return sink_.last;
  }

  static SpanTimes Part(const CallTrace& trace, CallPart part) {
    return trace.parts[static_cast<size_t>(part)];
  }

  Sink sink_;
};

TEST_F(SpansTest, ABatchIsPreparedThenQueuedThenComputed) {
  StartEngine();
  const ModelHandle model = MakeModel(FakeOptions());
  const CallInfo info = Traced();
  Box box;
  Submit(model, "some text", box, info);
  ASSERT_TRUE(box.Wait().ok()) << box.Wait().status();
  const CallTrace& trace = Ended(info);
  const SpanTimes prepare = Part(trace, CallPart::kPrepare);
  const SpanTimes queue = Part(trace, CallPart::kQueue);
  const SpanTimes compute = Part(trace, CallPart::kCompute);
  EXPECT_TRUE(prepare.noted() && queue.noted() && compute.noted());
  EXPECT_LE(trace.whole.begin, prepare.begin);
  EXPECT_LE(prepare.end, queue.begin);
  EXPECT_LE(queue.end, compute.begin);
  EXPECT_LE(compute.end, trace.whole.end);
  EXPECT_FALSE(Part(trace, CallPart::kStream).noted());
}

TEST_F(SpansTest, AGenerationStreamsWhileItComputes) {
  StartEngine();
  const ModelHandle model = MakeGenerator({});
  const CallInfo info = Traced();
  EventBox box;
  Generate(model, Prompt("a prompt", 20), box, info);
  ASSERT_TRUE(box.Wait().ok()) << box.Wait().status();
  const CallTrace& trace = Ended(info);
  const SpanTimes compute = Part(trace, CallPart::kCompute);
  const SpanTimes stream = Part(trace, CallPart::kStream);
  ASSERT_TRUE(compute.noted() && stream.noted());
  EXPECT_LT(compute.begin, stream.begin);
  EXPECT_LE(stream.begin, compute.end);
  EXPECT_EQ(stream.end, trace.whole.end);
}

TEST_F(SpansTest, ARefusedCallWasPreparedOnly) {
  StartEngine();
  FakeOptions options;
  const ModelHandle model = MakeModel(options);
  const CallInfo info = Traced();
  Box box;
  models::Request request;  // Neither text nor tokens.
  engine_->Submit(model, std::move(request), info, box.reply());
  EXPECT_FALSE(box.Wait().ok());
  const CallTrace& trace = Ended(info);
  EXPECT_FALSE(Part(trace, CallPart::kCompute).noted());
}

}  // namespace
}  // namespace longview::server
