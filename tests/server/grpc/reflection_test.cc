// Server reflection: both versions, every question, the end with the server.
#include <google/protobuf/descriptor.pb.h>

#include <set>

#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "tests/server/grpc/fixture.h"

namespace longview::testing {
namespace {

namespace v1 = grpc::reflection::v1;
namespace v1alpha = grpc::reflection::v1alpha;

class ReflectionTest : public GrpcFixture {
 protected:
  using Stream =
      grpc::ClientReaderWriter<v1::ServerReflectionRequest, v1::ServerReflectionResponse>;

  ReflectionTest() : stub(v1::ServerReflection::NewStub(channel)) {
    SetTimeout(context, absl::Seconds(20) * TimeSlack());
    stream = stub->ServerReflectionInfo(&context);
  }

  v1::ServerReflectionResponse Ask(const std::string& question) {
    v1::ServerReflectionResponse response;
    EXPECT_TRUE(stream->Write(Parse<v1::ServerReflectionRequest>(question))) << question;
    EXPECT_TRUE(stream->Read(&response)) << question;
    return response;
  }

  // Names of the files of an answer.
  static std::set<std::string> Files(const v1::ServerReflectionResponse& response) {
    std::set<std::string> names;
    for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.insert(file.name());
    }
    EXPECT_EQ(names.size(), response.file_descriptor_response().file_descriptor_proto_size());
    return names;
  }

  std::unique_ptr<v1::ServerReflection::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<Stream> stream;
};

const std::set<std::string> kServices = {"inference.GRPCInferenceService",
                                         "longview.v1.TextService",
                                         "longview.v1.VisionService",
                                         "longview.v1.ModelService",
                                         "grpc.health.v1.Health",
                                         "grpc.reflection.v1.ServerReflection",
                                         "grpc.reflection.v1alpha.ServerReflection"};

template <typename Response>
std::set<std::string> ServicesOf(const Response& response) {
  std::set<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.insert(service.name());
  }
  return names;
}

TEST_F(ReflectionTest, ListsEveryService) {
  EXPECT_EQ(ServicesOf(Ask(R"(list_services: "*")")), kServices);
}

TEST_F(ReflectionTest, TheOlderVersionSaysTheSame) {
  grpc::ClientContext older;
  SetTimeout(older, absl::Seconds(20) * TimeSlack());
  const auto alpha = v1alpha::ServerReflection::NewStub(channel);
  const auto asked = alpha->ServerReflectionInfo(&older);
  ASSERT_TRUE(asked->Write(Parse<v1alpha::ServerReflectionRequest>(R"(list_services: "")")));
  v1alpha::ServerReflectionResponse response;
  ASSERT_TRUE(asked->Read(&response));
  EXPECT_EQ(ServicesOf(response), kServices);
  ASSERT_TRUE(asked->WritesDone());
  EXPECT_FALSE(asked->Read(&response));
  EXPECT_TRUE(asked->Finish().ok());
}

TEST_F(ReflectionTest, FilesComeWithAllThatTheyImport) {
  const std::set<std::string> text = {"longview/v1/text.proto", "longview/v1/types.proto"};
  for (const char* question : {R"(file_containing_symbol: "longview.v1.TextService")",
                               R"(file_containing_symbol: "longview.v1.TextService.Classify")",
                               R"(file_containing_symbol: "longview.v1.ClassifyRequest.text")",
                               R"(file_by_filename: "longview/v1/text.proto")"}) {
    EXPECT_EQ(Files(Ask(question)), text) << question;
  }
  const std::set<std::string> own = {"grpc/reflection/v1/reflection.proto"};
  EXPECT_EQ(Files(Ask(R"(file_containing_symbol: "grpc.reflection.v1.ServerReflectionRequest")")),
            own);
}

TEST_F(ReflectionTest, WhatIsNotThereIsAnErrorAndTheStreamGoesOn) {
  for (
      const char* question :
      {R"(file_containing_symbol: "longview.v1.Nothing")", R"(file_by_filename: "nothing.proto")",
       R"(all_extension_numbers_of_type: "nothing")",
       R"(file_containing_extension { containing_type: "longview.v1.Model" extension_number: 7 })"}) {
    const auto answer = Ask(question);
    EXPECT_EQ(answer.error_response().error_code(), grpc::StatusCode::NOT_FOUND) << question;
    EXPECT_TRUE(answer.has_original_request());
  }
  EXPECT_EQ(Ask("").error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto none = Ask(R"(host: "h" all_extension_numbers_of_type: "longview.v1.Model")");
  EXPECT_EQ(none.all_extension_numbers_response().base_type_name(), "longview.v1.Model");
  EXPECT_EQ(none.valid_host(), "h");
}

TEST_F(ReflectionTest, StreamsEndWithTheServer) {
  Ask(R"(list_services: "")");
  server->Stop(server::SteadyNow() + absl::Seconds(20));
  v1::ServerReflectionResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace longview::testing
