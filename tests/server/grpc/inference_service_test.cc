// inference.GRPCInferenceService through a channel: every unary RPC.
#include <grpcpp/generic/generic_stub.h>

#include <future>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tests/server/grpc/fixture.h"

namespace longview::testing {
namespace {

using inference::GRPCInferenceService;

class InferenceService : public GrpcFixture {
 protected:
  InferenceService() : stub(GRPCInferenceService::NewStub(channel)) {}

  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (GRPCInferenceService::Stub::*call)(grpc::ClientContext*,
                                                                     const Request&, Response*),
                    const std::string& text, Response* response) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(20));
    return (stub.get()->*call)(&context, Parse<Request>(text), response);
  }

  std::unique_ptr<GRPCInferenceService::Stub> stub;
};

TEST_F(InferenceService, Probes) {
  inference::ServerLiveResponse live;
  ASSERT_TRUE(Call(&GRPCInferenceService::Stub::ServerLive, "", &live).ok());
  EXPECT_TRUE(live.live());
  inference::ServerReadyResponse ready;
  ASSERT_TRUE(Call(&GRPCInferenceService::Stub::ServerReady, "", &ready).ok());
  EXPECT_TRUE(ready.ready());
  inference::ModelReadyResponse model;
  ASSERT_TRUE(Call(&GRPCInferenceService::Stub::ModelReady, R"(name: "one")", &model).ok());
  EXPECT_TRUE(model.ready());
  for (const char* unknown : {R"(name: "other")", R"(name: "one" version: "9")"}) {
    ASSERT_TRUE(Call(&GRPCInferenceService::Stub::ModelReady, unknown, &model).ok());
    EXPECT_FALSE(model.ready()) << unknown;
  }
}

TEST_F(InferenceService, Metadata) {
  inference::ServerMetadataResponse server_metadata;
  ASSERT_TRUE(Call(&GRPCInferenceService::Stub::ServerMetadata, "", &server_metadata).ok());
  EXPECT_EQ(server_metadata.name(), "longview");
  inference::ModelMetadataResponse metadata;
  ASSERT_TRUE(Call(&GRPCInferenceService::Stub::ModelMetadata, R"(name: "one")", &metadata).ok());
  EXPECT_EQ(metadata.properties().at("task"), "text-classification");
  EXPECT_EQ(
      Call(&GRPCInferenceService::Stub::ModelMetadata, R"(name: "other")", &metadata).error_code(),
      grpc::StatusCode::NOT_FOUND);
  inference::ModelConfigResponse config;
  ASSERT_TRUE(Call(&GRPCInferenceService::Stub::ModelConfig, R"(name: "one")", &config).ok());
  EXPECT_EQ(config.config().backend(), "longview");
  inference::ModelStatisticsResponse statistics;
  ASSERT_TRUE(
      Call(&GRPCInferenceService::Stub::ModelStatistics, R"(name: "one")", &statistics).ok());
  EXPECT_EQ(statistics.model_stats_size(), 1);
}

TEST_F(InferenceService, Repository) {
  inference::RepositoryModelUnloadResponse unloaded;
  ASSERT_TRUE(
      Call(&GRPCInferenceService::Stub::RepositoryModelUnload, R"(model_name: "one")", &unloaded)
          .ok());
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(Call(&GRPCInferenceService::Stub::RepositoryIndex, "", &index).ok());
  ASSERT_EQ(index.models_size(), 1);
  EXPECT_EQ(index.models(0).state(), "UNAVAILABLE");
  ASSERT_TRUE(Call(&GRPCInferenceService::Stub::RepositoryIndex, "ready: true", &index).ok());
  EXPECT_EQ(index.models_size(), 0);
  inference::ModelInferResponse response;
  EXPECT_EQ(
      Call(&GRPCInferenceService::Stub::ModelInfer, R"(model_name: "one")", &response).error_code(),
      grpc::StatusCode::NOT_FOUND);
  inference::RepositoryModelLoadResponse loaded;
  ASSERT_TRUE(
      Call(&GRPCInferenceService::Stub::RepositoryModelLoad, R"(model_name: "one")", &loaded).ok());
  inference::ModelReadyResponse ready;
  ASSERT_TRUE(Call(&GRPCInferenceService::Stub::ModelReady, R"(name: "one")", &ready).ok());
  EXPECT_TRUE(ready.ready());
}

TEST_F(InferenceService, Infer) {
  inference::ModelInferResponse response;
  const grpc::Status status = Call(&GRPCInferenceService::Stub::ModelInfer,
                                   R"(model_name: "one" id: "7" inputs { name: "text"
                                      datatype: "BYTES" shape: [1]
                                      contents { bytes_contents: "abc" } })",
                                   &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.id(), "7");
  EXPECT_EQ(response.outputs_size(), 3);
}

TEST_F(InferenceService, QueueFullSaysWhenToComeAgain) {
  backend.FillQueue("127.0.0.1");
  inference::ModelInferResponse response;
  const grpc::Status status = Call(&GRPCInferenceService::Stub::ModelInfer,
                                   R"(model_name: "one" inputs { name: "text" datatype: "BYTES"
                                      shape: [1] contents { bytes_contents: "abc" } })",
                                   &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 2);
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(1).UnpackTo(&retry));
  EXPECT_GE(retry.retry_delay().seconds(), 1);  // 1.5 s, spread where others are refused, too.
  EXPECT_LE(retry.retry_delay().seconds(), 3);
}

TEST_F(InferenceService, TheTimeoutParameterShortensTheDeadline) {
  inference::ModelInferResponse response;
  const grpc::Status status = Call(&GRPCInferenceService::Stub::ModelInfer,
                                   R"(model_name: "one" inputs { name: "text" datatype: "BYTES"
                                      shape: [1] contents { bytes_contents: "abc" } }
                                      parameters { key: "timeout" value { int64_param: 1 } })",
                                   &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
}

TEST_F(InferenceService, TraceLogAndSharedMemorySayWhatToUseInstead) {
  grpc::TemplatedGenericStub<inference::ModelReadyRequest, inference::ServerLiveResponse> generic(
      channel);
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"TraceSetting", "--otlp_endpoint"},
      {"LogSettings", "--log_level"},
      {"SystemSharedMemoryStatus", "send tensors in the request"},
      {"SystemSharedMemoryRegister", "send tensors in the request"},
      {"SystemSharedMemoryUnregister", "send tensors in the request"},
      {"CudaSharedMemoryStatus", "send tensors in the request"},
      {"CudaSharedMemoryRegister", "send tensors in the request"},
      {"CudaSharedMemoryUnregister", "send tensors in the request"}};
  for (const auto& [rpc, part] : cases) {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name("a field that the method does not know");
    inference::ServerLiveResponse response;
    std::promise<grpc::Status> status;
    generic.UnaryCall(&context, absl::StrCat("/inference.GRPCInferenceService/", rpc), {}, &request,
                      &response, [&status](grpc::Status ended) { status.set_value(ended); });
    const grpc::Status ended = status.get_future().get();
    EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNIMPLEMENTED) << rpc;
    EXPECT_NE(ended.error_message().find(part), std::string::npos) << rpc << ended.error_message();
  }
}

}  // namespace
}  // namespace longview::testing
