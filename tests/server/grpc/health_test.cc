// grpc.health.v1: every kind of name, changes seen by Watch, the end of watches.
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/server/grpc/fixture.h"

namespace longview::testing {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using server::Lifecycle;

class HealthTest : public GrpcFixture {
 protected:
  HealthTest() : stub(Health::NewStub(channel)) {}

  // The status, or -1 for NOT_FOUND.
  int Check(const std::string& service) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const grpc::Status status = stub->Check(&context, request, &response);
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) return -1;
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.status();
  }

  struct Watch {
    Watch(Health::Stub& stub, const std::string& service) {
      SetTimeout(context, absl::Seconds(20));
      HealthCheckRequest request;
      request.set_service(service);
      reader = stub.Watch(&context, request);
    }
    // The next status; -1 at the end.
    int Next() {
      HealthCheckResponse response;
      return reader->Read(&response) ? static_cast<int>(response.status()) : -1;
    }
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader;
  };

  std::unique_ptr<Health::Stub> stub;
};

TEST_F(HealthTest, EveryKindOfName) {
  for (const char* name :
       {"", "readiness", "liveness", "one", "inference.GRPCInferenceService",
        "longview.v1.TextService", "longview.v1.VisionService", "longview.v1.ModelService",
        "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection"}) {
    EXPECT_EQ(Check(name), HealthCheckResponse::SERVING) << name;
  }
  for (const char* name : {"other", "ready", "longview.v1.NoService"}) {
    EXPECT_EQ(Check(name), -1) << name;
  }
}

TEST_F(HealthTest, AListHasEveryName) {
  backend.store.AddUnloaded("late", server::ModelState::kLoading, "");
  backend.lifecycle.set_phase(Lifecycle::Phase::kDraining);
  grpc::ClientContext context;
  grpc::health::v1::HealthListResponse list;
  ASSERT_TRUE(stub->List(&context, {}, &list).ok());
  const auto status = [&](const char* name) { return list.statuses().at(name).status(); };
  EXPECT_EQ(status(""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(status("readiness"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(status("liveness"), HealthCheckResponse::SERVING);
  EXPECT_EQ(status("one"), HealthCheckResponse::SERVING);
  EXPECT_EQ(status("late"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(status("longview.v1.TextService"), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthTest, StartingAndDraining) {
  for (const auto phase : {Lifecycle::Phase::kStarting, Lifecycle::Phase::kDraining}) {
    backend.lifecycle.set_phase(phase);
    EXPECT_EQ(Check(""), HealthCheckResponse::NOT_SERVING);
    EXPECT_EQ(Check("readiness"), HealthCheckResponse::NOT_SERVING);
    EXPECT_EQ(Check("longview.v1.TextService"), HealthCheckResponse::NOT_SERVING);
    EXPECT_EQ(Check("liveness"), HealthCheckResponse::SERVING);
  }
}

TEST_F(HealthTest, WatchSeesTheDrain) {
  Watch readiness(*stub, "readiness");
  Watch whole(*stub, "");
  EXPECT_EQ(readiness.Next(), HealthCheckResponse::SERVING);
  EXPECT_EQ(whole.Next(), HealthCheckResponse::SERVING);
  backend.lifecycle.set_phase(Lifecycle::Phase::kDraining);
  EXPECT_EQ(readiness.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(whole.Next(), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthTest, WatchIsToldOfChangesAndDoesNotWaitForTheNextLook) {
  Watch watch(*stub, "");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  // A look a second would see no more than twenty changes before the call's deadline.
  for (int i = 0; i < 50; ++i) {
    backend.lifecycle.set_phase(Lifecycle::Phase::kDraining);
    ASSERT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING) << i;
    backend.lifecycle.set_phase(Lifecycle::Phase::kServing);
    ASSERT_EQ(watch.Next(), HealthCheckResponse::SERVING) << i;
  }
}

TEST_F(HealthTest, WatchFollowsAModelFromUnknownToUnloaded) {
  Watch watch(*stub, "late");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  backend.store.AddUnloaded("late", server::ModelState::kLoading, "");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  backend.store.Add("late", {});
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  backend.store.Unload("late", [](absl::Status) {});
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthTest, WatchersMayLeave) {
  {
    Watch watch(*stub, "");
    EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
    watch.context.TryCancel();
    EXPECT_EQ(watch.Next(), -1);
    EXPECT_EQ(watch.reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  Watch another(*stub, "");
  EXPECT_EQ(another.Next(), HealthCheckResponse::SERVING);
}

TEST_F(HealthTest, WatchesEndWithTheServer) {
  Watch watch(*stub, "liveness");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  const absl::Time deadline = server::SteadyNow() + absl::Seconds(20);
  server->Stop(deadline);
  EXPECT_LT(server::SteadyNow(), deadline) << "a watch held up the server";
  EXPECT_EQ(watch.Next(), -1);
  EXPECT_EQ(watch.reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace longview::testing
