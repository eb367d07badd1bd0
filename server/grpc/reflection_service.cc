#include "server/grpc/reflection_service.h"

#include "grpc/reflection/v1/reflection.pb.h"
#include "server/errors.h"
#include "server/grpc/reflection_answer.h"
#include "server/status_map_grpc.h"

namespace longview::server {

using grpc::reflection::v1::ServerReflectionRequest;

ReflectionCall::ReflectionCall(const std::vector<std::string>& services, OpenStreams& streams,
                               const CallTools& tools, grpc::CallbackServerContext& context)
    : ByteCall(tools, context, "ServerReflectionInfo", Access::kKey),
      services_(services),
      streams_(streams) {}

void ReflectionCall::Begin() {
  streams_.Add(this);
  std::lock_guard lock(mutex_);
  if (!finished_) Read(Pace::kAnyTime);
}

void ReflectionCall::OnMessage(grpc::ByteBuffer& bytes) {
  ServerReflectionRequest request;
  const grpc::Status read = Decode(bytes, request, held());
  std::lock_guard lock(mutex_);
  if (finished_) return;
  if (!read.ok()) return End(read);
  StartWrite(&Encode(AnswerReflection(request, services_)));
  answering_ = true;
}

void ReflectionCall::OnWriteDone(bool ok) {
  open().Taken();
  std::lock_guard lock(mutex_);
  answering_ = false;
  if (!ok) return End({grpc::StatusCode::CANCELLED, "the client left"});
  if (ending_) return End(*ending_);
  Read(Pace::kAnyTime);
}

void ReflectionCall::OnNoMessage() {
  std::lock_guard lock(mutex_);
  End(grpc::Status::OK);
}

void ReflectionCall::EndWhenIdle() { EndNow(ToGrpcStatus(ShuttingDownError())); }

void ReflectionCall::EndNow(const grpc::Status& status) {
  std::lock_guard lock(mutex_);
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
  { std::lock_guard lock(mutex_); }
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
