// The common base of every RPC: a call that gRPC treats as two streams of bytes.
//
// gRPC's typed handlers read, inflate and parse a message before they ask anybody. Here the key is
// checked first, then a message is read against the clock, accounted to its client, inflated and
// parsed within limits, large ones on the ParsePool; answers are written against the clock.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "server/call.h"
#include "server/exception_guard.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/connections.h"
#include "server/grpc/message_decoder.h"
#include "server/grpc/open_calls.h"
#include "server/grpc/parse_pool.h"
#include "server/limits/byte_budget.h"

namespace longview::server {

using ByteReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// Collaborators shared by all calls. Everything is borrowed and outlives them.
struct CallTools {
  const CallGate& gate;
  const MessageDecoder& decoder;
  ByteBudget& budget;
  ParsePool& pool;
  Connections& connections;
  OpenCalls& calls;
};

// Whether a method asks for a key.
enum class Access { kKey, kAnybody };

// Base of a call. Owns itself: it is deleted when the library is done with it and no work of its
// own is under way. One read and one write at a time.
class ByteCall : public ByteReactor {
 public:
  // Lets the client in, or finishes the call, and returns it: for the library's handler. Then Begin
  // runs if the call was let in.
  static ByteReactor* Run(ByteCall* call);

  void OnReadDone(bool ok) final;
  void OnDone() final;

  // Ends the call with an error, if it has not ended yet, as soon as the library allows it, and
  // stops what was begun for it. The caller holds the call.
  virtual void EndNow(const grpc::Status& status) = 0;

  // Keeps the object while work of its own is under way.
  void Hold() { holds_.fetch_add(1, std::memory_order_relaxed); }
  // Hold for callers who do not hold the call yet: false if it is about to be deleted.
  bool TryHold();
  void Drop();

  // Holds the call as long as it lives.
  class Keeper {
   public:
    explicit Keeper(ByteCall* call) : call_(call) { call->Hold(); }
    Keeper(Keeper&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
    Keeper& operator=(Keeper&&) = delete;
    ~Keeper() {
      if (call_ != nullptr) call_->Drop();
    }

   private:
    ByteCall* call_;
  };

 protected:
  // `method`: static storage.
  ByteCall(const CallTools& tools, grpc::CallbackServerContext& context, std::string_view method,
           Access access);
  ~ByteCall() override = default;

  // The first step of a call that was let in: usually Read.
  virtual void Begin() = 0;
  // A message came; Decode reads it. On a polling thread, or on the pool's. If there is no memory
  // for what this does, and it throws, the call ends.
  virtual void OnMessage(grpc::ByteBuffer& bytes) = 0;
  // The client sends no more, or left.
  virtual void OnNoMessage() = 0;
  // The end of the object, and of whatever still refers to it.
  virtual void Delete() { delete this; }

  // Runs a step of the call. If there is no memory for it, and it throws, the call ends by EndNow.
  // REQUIRES: the call is held.
  template <typename Step>
  void OrEnd(Step step) {
    const absl::Status stepped = Guarded([&step] {
      step();
      return absl::OkStatus();
    });
    if (!stepped.ok()) EndNow(Failed(stepped));
  }

  enum class Pace { kInTime, kAnyTime };  // kAnyTime: a stream may be silent between messages.
  void Read(Pace pace);

  // Parses a message into one of the method's type, and reserves its bytes beside those of the
  // call. An error is the status to finish with; it has been recorded, and the bytes are gone.
  grpc::Status Decode(grpc::ByteBuffer& bytes, google::protobuf::Message& message,
                      ByteBudget::Reservation& held);
  // The first part of Decode. Errors are MessageDecoder's; on those the bytes stay, inflated if
  // it came so far.
  absl::Status TryDecode(grpc::ByteBuffer& bytes, google::protobuf::Message& message,
                         ByteBudget::Reservation& held);
  // The status that Decode returns for an error of TryDecode.
  grpc::Status Refused(const absl::Status& decoded) const;

  // A reservation of this call's client for one more message of a stream.
  ByteBudget::Reservation Reserve() const;

  // The bytes of an answer, which now count as the client's in place of the request's. `bytes` of a
  // message before are gone.
  grpc::ByteBuffer& Encode(const google::protobuf::Message& message);
  // For unary calls: the answer and the end.
  void WriteAndFinish(const google::protobuf::Message& message);

  // Ends the call. The delay of a status that may be repeated also goes into the trailer that
  // clients' libraries obey by themselves; they repeat nothing after initial metadata, so that the
  // request id of such a call, too, goes into the trailer unless a message was written before.
  void Finish(const grpc::Status& status);
  // Writes the last message and ends the call like Finish.
  void WriteAndFinish(const grpc::ByteBuffer& bytes, const grpc::Status& status);

  const CallInfo& info() const { return info_; }
  // Whether the call was finished without Begin: OnCancel must not finish it again.
  bool refused() const { return refused_; }
  OpenCall& open() { return open_; }
  ByteBudget::Reservation& held() { return held_; }

 private:
  ByteReactor* Refuse(const grpc::Status& status);
  // Sends the request id with the initial metadata, once.
  void TellRequestId();
  void TellEnd(const grpc::Status& status);
  // The status to end with, recorded.
  grpc::Status Failed(const absl::Status& status) const;

  const CallTools& tools_;
  grpc::CallbackServerContext& context_;
  OpenCall open_;
  const Access access_;
  bool refused_ = false;  // Set before gRPC can call the reactor.
  bool begun_ = false;    // The call is among tools_.calls; set before gRPC can call it.
  bool request_id_told_ = false;
  CallInfo info_;
  ByteBudget::Reservation held_;  // Holds the call and its only request.
  grpc::ByteBuffer in_;           // Belongs to the read that is under way.
  grpc::ByteBuffer out_;          // Belongs to the write that is under way.
  std::atomic<int> holds_{1};     // References of the library (one) and of Hold.
};

}  // namespace longview::server
