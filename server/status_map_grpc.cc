#include "server/status_map_grpc.h"

#include <cstdint>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/errors.h"
#include "server/retry_delay.h"

namespace longview::server {
namespace {

constexpr size_t kMaxMessageBytes = 1500;
constexpr char kDomain[] = "longview";

// The codes of both libraries have the same numbers, by their documentation.
static_assert(static_cast<int>(absl::StatusCode::kCancelled) == grpc::StatusCode::CANCELLED);
static_assert(static_cast<int>(absl::StatusCode::kInvalidArgument) ==
              grpc::StatusCode::INVALID_ARGUMENT);
static_assert(static_cast<int>(absl::StatusCode::kResourceExhausted) ==
              grpc::StatusCode::RESOURCE_EXHAUSTED);
static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) ==
              grpc::StatusCode::UNAUTHENTICATED);

// Cut at the start of a UTF-8 character.
std::string Shortened(std::string_view message) {
  if (message.size() <= kMaxMessageBytes) return std::string(message);
  size_t end = kMaxMessageBytes;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
  return std::string(message.substr(0, end)) + "...";
}

google::protobuf::Duration ToProto(absl::Duration delay) {
  google::protobuf::Duration out;
  out.set_seconds(absl::IDivDuration(delay, absl::Seconds(1), &delay));
  out.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(delay)));
  return out;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const ErrorDetail detail = GetErrorDetail(status);
  google::rpc::Status proto;
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(Shortened(std::string_view(status.message().data(), status.message().size())));
  google::rpc::ErrorInfo info;
  info.set_reason(detail.reason);
  info.set_domain(kDomain);
  if (!detail.param.empty()) (*info.mutable_metadata())["param"] = detail.param;
  proto.add_details()->PackFrom(info);
  if (detail.retry_after) {
    google::rpc::RetryInfo retry;
    *retry.mutable_retry_delay() = ToProto(SpreadDelay(detail.reason, *detail.retry_after));
    proto.add_details()->PackFrom(retry);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), proto.message(),
                      proto.SerializeAsString());
}

std::optional<absl::Duration> RetryDelayOf(const grpc::Status& status) {
  google::rpc::Status proto;
  google::rpc::RetryInfo retry;
  if (status.ok() || !proto.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& detail : proto.details()) {
    if (!detail.UnpackTo(&retry)) continue;
    return absl::Seconds(retry.retry_delay().seconds()) +
           absl::Nanoseconds(retry.retry_delay().nanos());
  }
  return std::nullopt;
}

}  // namespace longview::server
