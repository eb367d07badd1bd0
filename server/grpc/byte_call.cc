#include "server/grpc/byte_call.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/grpc/call_context.h"
#include "server/grpc/message_decoder.h"
#include "server/scheduler/steady_clock.h"
#include "server/status_map_grpc.h"

#if defined(LONGVIEW_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace longview::server {
namespace {

// Memory of a call, in the library and here, before any message.
constexpr uint64_t kBytesPerOpenCall = 16 * 1024;

// Parsed on the polling thread up to here: less work than a change of threads.
constexpr size_t kLargeMessage = 128 * 1024;

// gRPC orders what comes before the start of a read before its reaction; ThreadSanitizer cannot see
// that in a library which is not instrumented.
void ReadStarts([[maybe_unused]] ByteCall* call) {
#if defined(LONGVIEW_THREAD_SANITIZER)
  __tsan_release(call);
#endif
}
void ReadEnds([[maybe_unused]] ByteCall* call) {
#if defined(LONGVIEW_THREAD_SANITIZER)
  __tsan_acquire(call);
#endif
}

}  // namespace

ByteCall::ByteCall(const CallTools& tools, grpc::CallbackServerContext& context,
                   std::string_view method, Access access)
    : tools_(tools), context_(context), open_(tools.connections, context), access_(access) {
  info_.method = method;
}

ByteReactor* ByteCall::Run(ByteCall* call) {
  if (call->open_.lost()) {
    return call->Refuse({grpc::StatusCode::CANCELLED, "the connection is being closed"});
  }
  if (call->access_ == Access::kKey) {
    const CallGate& gate = call->tools_.gate;
    call->info_ = gate.Read(call->context_, call->info_.method, call->open_.address());
    if (absl::Status admitted = gate.Admit(call->context_, call->info_); !admitted.ok()) {
      return call->Refuse(ToGrpcStatus(admitted));
    }
  } else {
    call->info_.api = "grpc";
    call->info_.arrival = SteadyNow();
    call->info_.client = call->open_.address();
  }
  absl::StatusOr<ByteBudget::Reservation> held =
      call->tools_.budget.TryReserve(call->info_.client, kBytesPerOpenCall);
  if (!held.ok()) {
    return call->Refuse(ToGrpcStatus(call->tools_.gate.Record(call->info_, held.status())));
  }
  call->held_ = *std::move(held);
  call->begun_ = true;
  call->tools_.calls.Add(call);
  call->Begin();
  return call;
}

ByteReactor* ByteCall::Refuse(const grpc::Status& status) {
  refused_ = true;
  Finish(status);
  return this;
}

void ByteCall::Read(Pace pace) {
  if (pace == Pace::kInTime) open_.AwaitMessage();
  ReadStarts(this);
  StartRead(&in_);
}

void ByteCall::OnReadDone(bool ok) {
  ReadEnds(this);
  if (!ok) {
    open_.NoMessage();
    return OnNoMessage();
  }
  open_.MessageCame(in_.Length());
  if (in_.Length() <= kLargeMessage && !IsCompressed(in_)) {
    const Keeper keeper(this);
    return OrEnd([this] { OnMessage(in_); });
  }
  tools_.pool.Run([this, keeper = Keeper(this)] { OrEnd([this] { OnMessage(in_); }); });
}

grpc::Status ByteCall::Failed(const absl::Status& status) const {
  return ToGrpcStatus(tools_.gate.Record(info_, status));
}

absl::Status ByteCall::TryDecode(grpc::ByteBuffer& bytes, google::protobuf::Message& message,
                                 ByteBudget::Reservation& held) {
  const uint64_t others = &held == &held_ ? kBytesPerOpenCall : 0;
  absl::Status decoded = tools_.decoder.Decode(bytes, others, message, held);
  open_.SetHeld(held.bytes());
  return decoded;
}

grpc::Status ByteCall::Refused(const absl::Status& decoded) const {
  if (absl::IsOutOfRange(decoded)) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, std::string(decoded.message())};
  }
  if (absl::IsInternal(decoded)) {
    return {grpc::StatusCode::INTERNAL, std::string(decoded.message())};
  }
  return ToGrpcStatus(tools_.gate.Record(info_, decoded));
}

grpc::Status ByteCall::Decode(grpc::ByteBuffer& bytes, google::protobuf::Message& message,
                              ByteBudget::Reservation& held) {
  const absl::Status decoded = TryDecode(bytes, message, held);
  if (decoded.ok()) return grpc::Status::OK;
  bytes.Clear();
  held.Reset();
  return Refused(decoded);
}

ByteBudget::Reservation ByteCall::Reserve() const {
  return *tools_.budget.TryReserve(info_.client, 0);
}

grpc::ByteBuffer& ByteCall::Encode(const google::protobuf::Message& message) {
  TellRequestId();
  out_.Clear();
  bool own = false;
  grpc::SerializationTraits<google::protobuf::Message>::Serialize(message, &out_, &own);
  held_.Charge(kBytesPerOpenCall + out_.Length());
  open_.SetHeld(held_.bytes());
  open_.AwaitReader(out_.Length());
  return out_;
}

void ByteCall::WriteAndFinish(const google::protobuf::Message& message) {
  WriteAndFinish(Encode(message), grpc::Status::OK);
}

void ByteCall::TellRequestId() {
  if (std::exchange(request_id_told_, true) || info_.request_id.empty()) return;
  context_.AddInitialMetadata(kRequestIdKey, info_.request_id);
}

void ByteCall::TellEnd(const grpc::Status& status) {
  const auto delay = RetryDelayOf(status);
  if (!delay) return TellRequestId();
  context_.AddTrailingMetadata("grpc-retry-pushback-ms",
                               absl::StrCat(absl::ToInt64Milliseconds(*delay)));
  if (std::exchange(request_id_told_, true) || info_.request_id.empty()) return;
  context_.AddTrailingMetadata(kRequestIdKey, info_.request_id);
}

void ByteCall::Finish(const grpc::Status& status) {
  TellEnd(status);
  ByteReactor::Finish(status);
}

void ByteCall::WriteAndFinish(const grpc::ByteBuffer& bytes, const grpc::Status& status) {
  TellEnd(status);
  StartWriteAndFinish(&bytes, grpc::WriteOptions(), status);
}

void ByteCall::OnDone() {
  open_.End();
  Drop();
}

// Never from 0: an object that is about to be deleted must not come back to life.
bool ByteCall::TryHold() {
  int holds = holds_.load(std::memory_order_relaxed);
  while (holds > 0) {
    if (holds_.compare_exchange_weak(holds, holds + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

void ByteCall::Drop() {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  if (!begun_) return Delete();
  OpenCalls& calls = tools_.calls;
  // Deleted comes last: AwaitNone must not return, and let the collaborators go, before the object
  // is gone.
  calls.Remove(this);
  Delete();
  calls.Deleted();
}

}  // namespace longview::server
