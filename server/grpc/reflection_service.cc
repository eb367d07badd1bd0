#include "server/grpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/status.h>

#include <google/protobuf/descriptor.pb.h>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "server/errors.h"
#include "server/status_map_grpc.h"

namespace longview::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

void SetError(grpc::StatusCode code, std::string message, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(code);
  response.mutable_error_response()->set_error_message(std::move(message));
}

void SetNotFound(std::string_view what, std::string_view name, ServerReflectionResponse& response) {
  SetError(grpc::StatusCode::NOT_FOUND,
           absl::StrCat(std::string(what), " ", Quoted(name), " not found"), response);
}

// Adds the file behind those that it imports, each once.
void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
             ServerReflectionResponse& response) {
  if (!seen.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), seen, response);
}

void AddFiles(const FileDescriptor& file, ServerReflectionResponse& response) {
  std::set<const FileDescriptor*> seen;
  AddFile(file, seen, response);
}

void AnswerExtension(const grpc::reflection::v1::ExtensionRequest& asked,
                     ServerReflectionResponse& response) {
  const Descriptor* const type = Pool().FindMessageTypeByName(asked.containing_type());
  const FieldDescriptor* const field =
      type == nullptr ? nullptr : Pool().FindExtensionByNumber(type, asked.extension_number());
  if (field != nullptr) return AddFiles(*field->file(), response);
  SetNotFound(absl::StrCat("extension ", asked.extension_number(), " of"), asked.containing_type(),
              response);
}

void AnswerExtensionNumbers(const std::string& name, ServerReflectionResponse& response) {
  const Descriptor* const type = Pool().FindMessageTypeByName(name);
  if (type == nullptr) return SetNotFound("message", name, response);
  std::vector<const FieldDescriptor*> extensions;
  Pool().FindAllExtensions(type, &extensions);
  auto& numbers = *response.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(name);
  for (const FieldDescriptor* extension : extensions) {
    numbers.add_extension_number(extension->number());
  }
}

// `services`: full names of the services of this server. NOT_FOUND and INVALID_ARGUMENT are errors
// within the answer. Thread-safe.
ServerReflectionResponse AnswerReflection(const ServerReflectionRequest& request,
                                          const std::vector<std::string>& services) {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      if (const auto* file = Pool().FindFileByName(request.file_by_filename())) {
        AddFiles(*file, response);
      } else {
        SetNotFound("file", request.file_by_filename(), response);
      }
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      if (const auto* file = Pool().FindFileContainingSymbol(request.file_containing_symbol())) {
        AddFiles(*file, response);
      } else {
        SetNotFound("symbol", request.file_containing_symbol(), response);
      }
      break;
    case ServerReflectionRequest::kFileContainingExtension:
      AnswerExtension(request.file_containing_extension(), response);
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      AnswerExtensionNumbers(request.all_extension_numbers_of_type(), response);
      break;
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services) {
        response.mutable_list_services_response()->add_service()->set_name(name);
      }
      break;
    default:
      SetError(grpc::StatusCode::INVALID_ARGUMENT, "message_request: is missing", response);
  }
  return response;
}

}  // namespace

using grpc::reflection::v1::ServerReflectionRequest;

ReflectionCall::ReflectionCall(const std::vector<std::string>& services, OpenStreams& streams,
                               const CallTools& tools, grpc::CallbackServerContext& context)
    : ByteCall(tools, context, "ServerReflectionInfo", Access::kKey),
      services_(services),
      streams_(streams) {}

void ReflectionCall::Begin() {
  streams_.Add(this);
  absl::MutexLock lock(&mutex_);
  if (!finished_) Read(Pace::kAnyTime);
}

void ReflectionCall::OnMessage(grpc::ByteBuffer& bytes) {
  ServerReflectionRequest request;
  const grpc::Status read = Decode(bytes, request, held());
  absl::MutexLock lock(&mutex_);
  if (finished_) return;
  if (!read.ok()) return End(read);
  StartWrite(&Encode(AnswerReflection(request, services_)));
  answering_ = true;
}

void ReflectionCall::OnWriteDone(bool ok) {
  open().Taken();
  absl::MutexLock lock(&mutex_);
  answering_ = false;
  if (!ok) return End({grpc::StatusCode::CANCELLED, "the client left"});
  if (ending_) return End(*ending_);
  Read(Pace::kAnyTime);
}

void ReflectionCall::OnNoMessage() {
  absl::MutexLock lock(&mutex_);
  End(grpc::Status::OK);
}

void ReflectionCall::EndWhenIdle() { EndNow(ToGrpcStatus(ShuttingDownError())); }

void ReflectionCall::EndNow(const grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  ending_ = status;
  if (!answering_) End(status);
}

void ReflectionCall::End(const grpc::Status& status) {
  if (finished_) return;
  finished_ = true;
  Finish(status);
}

void ReflectionCall::Delete() {
  streams_.Remove(this);
  // The thread that called Finish may still hold the lock.
  { absl::MutexLock lock(&mutex_); }
  delete this;
}

void AddReflection(const std::vector<std::string>& services, OpenStreams& streams,
                   ByteService& service) {
  service.Add("ServerReflectionInfo",
              [&services, &streams, &service](grpc::CallbackServerContext& context) -> ByteCall* {
                return new ReflectionCall(services, streams, service.tools(), context);
              });
}

}  // namespace longview::server
