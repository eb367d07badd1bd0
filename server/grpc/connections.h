// The connections of the gRPC port and the calls that are open on them: how many there are, and how
// long and how much a client may keep the server waiting in the middle of a message.
//
// gRPC does not tell when it closes a connection it was given, and shows a message only when it is
// whole. So each connection's socket is kept under a second descriptor: it tells of the end, counts
// the bytes that came, and closes a connection by shutting the socket.
#pragma once

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/limits/connection_ends.h"
#include "server/limits/connection_ledger.h"
#include "server/limits/shut_addresses.h"
#include "server/security/client_address.h"

namespace longview::server {

struct ConnectionRules {
  ConnectionLimits limits;
  // Most bytes of an address: messages half sent, and requests and answers in memory. Above it the
  // connection with most half sent is closed.
  uint64_t most_bytes = uint64_t{240} << 20;
  // A message, either way, may take this long plus its bytes at min_rate.
  absl::Duration transfer_grace = absl::Seconds(20);
  double min_rate = 16 * 1024;  // Bytes per second.
  // Most unfinished calls of one address. A client that resets calls as fast as it can
  // (CVE-2023-44487) passes this and the next limit, however few streams HTTP/2 allows at a time:
  // gRPC keeps a call until it comes round to it.
  int most_calls = 4096;
  int most_vain_calls = 1000;  // Most calls of one address that are left in a second, soon.
  // Above this many arriving plus abandoned calls, reads are throttled. Arriving: gRPC has read the
  // headers, and no handler has run; abandoned: left by the client before that, and not over.
  int most_arriving = 2048;
  // An address that passes one of these three limits is shut out for so long: its connections that
  // are younger are closed, and new ones refused. Closing one alone does not stop a client that
  // opens the next at once: its calls come faster than they end, and gRPC keeps some 25 KB of each.
  absl::Duration shut_out = absl::Seconds(1);
  TrustedProxies proxies = {};  // Peers whose connections carry many clients.
  ConnectionEnds ends = {};
};

// The calls of one address, over all its connections, or of one connection of a proxy.
struct CallSource {
  int connections = 0;
  int calls = 0;
  int vain = 0;  // Calls that the client left soon, since `vain_since`.
  absl::Time vain_since = absl::InfinitePast();
};

// A connection, from accept to the end of its last call. Fields are the table's.
struct GrpcConnection {
  std::string peer;     // In gRPC's notation: "ipv4:10.0.0.1:443".
  std::string address;  // Without port.
  std::string unit;     // FairnessUnit of it: what limits of an address go by.
  int descriptor = -1;  // The second descriptor of the socket, which is ours.
  std::unique_ptr<ConnectionLedger::Entry> entry;
  int calls = 0;
  // Bytes that came and belong to whole messages, or to none, since `base` bytes had come.
  std::atomic<uint64_t> settled{0};
  uint64_t base = 0;
  bool rebase = true;             // No call was open at some time since the last look.
  std::atomic<uint64_t> came{0};  // Bytes, as of the last look.
  uint64_t half_sent = 0;         // Bytes of unfinished messages, as of the last look.
  std::string source_name;
  CallSource* source = nullptr;
  absl::Time since;                 // Time of admission.
  bool cut = false;                 // Being closed by us.
  uint64_t begun = 0;               // Calls that ever began.
  bool without_call = false;        // No call was open at the last look.
  uint64_t base_without_call = 0;   // Bytes that had come when that was first so.
  uint64_t begun_without_call = 0;  // Value of `begun` when that was first so.
  uint64_t taken_in_flood = 0;      // Bytes gRPC had taken off the socket when a flood began.
  uint64_t begun_in_flood = 0;      // Value of `begun` when the flood began.
};

class OpenCall;

// Thread-safe. Outlives its calls.
class Connections {
 public:
  // `wake` is called, under no lock, when Tick is to be called every kTick again.
  Connections(ConnectionRules rules, absl::AnyInvocable<void()> wake);
  ~Connections();

  static constexpr absl::Duration kTick = absl::Milliseconds(100);
  // The time between two ticks while an address has much half sent: it could send the rest of its
  // limit within kTick.
  static constexpr absl::Duration kShortTick = absl::Milliseconds(10);
  // The time between two ticks while there are connections and no calls.
  static constexpr absl::Duration kIdleTick = absl::Milliseconds(250);

  // Counts the connection on `descriptor`, which stays the caller's. `peer` and `address` as in
  // GrpcConnection; the address decides whose connection it is, also behind a proxy. The second
  // descriptor, or -1 if the connection must be refused: its address is at a limit or shut out.
  int Admit(int descriptor, std::string peer, std::string address);

  // The connection of the second `descriptor` is over.
  void Closed(int descriptor);

  // Ends calls that are over time, and connections over their bytes or that flood. `now` is of
  // SteadyNow. Returns when it is to be called again; infinite if there is no connection: then not
  // until `wake`.
  absl::Duration Tick(absl::Time now);

  // A call's headers were read. Its OpenCall follows, or Arrived. Called on a thread that reads,
  // which it holds up for a moment while too many calls are arriving.
  void Arrive();
  void Arrived() { arriving_.fetch_sub(1, std::memory_order_relaxed); }

  int open() const { return ledger_.open(); }

 private:
  friend class OpenCall;

  // Tells the call its address and connection, or that the connection is lost.
  void Begin(OpenCall& call, const std::string& peer);
  // The client left the call soon, and before its message came. Counts at once: by the time that
  // the call is over, as many as fill the memory may have begun behind it.
  void Leave(OpenCall& call);
  void End(OpenCall& call);
  // Closes connections that send much and begin no call: a block of headers without an end, which
  // gRPC 1.51 keeps.
  void CloseEndlessHeads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountHalfSent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t CloseHogs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Closes the connection; nothing more of it is read.
  void Cut(GrpcConnection& connection, EndCause cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cuts the connection and shuts out its address. A proxy's address stays open.
  void ShutOut(GrpcConnection& culprit, EndCause cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the address, of this unit, is shut out at `now`; if so, tells that it was refused.
  bool Refuses(const std::string& unit, const std::string& address, absl::Time now);
  // Tells that a connection is refused or closed.
  void Tell(EndCause cause, const std::string& address) const;

  // The client left a call soon after it began.
  void CountVain(GrpcConnection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Shuts out the address of `newest`, and cuts its busiest connection, if it has too many calls.
  void CheckCalls(const GrpcConnection& newest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether too many calls are arriving. Shuts out the address that most of them come from, once
  // gRPC has been seen to read on without coming round to them.
  bool StopFlood() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(GrpcConnection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConnectionRules rules_;
  absl::AnyInvocable<void()> wake_;
  ConnectionLedger ledger_;
  std::atomic<bool> resting_{true};
  std::atomic<int> arriving_{0};
  std::atomic<int> left_{0};  // Calls that their clients left before they began, not over yet.
  mutable absl::Mutex mutex_;
  // A closed connection is kept until its last call is over, and found no more.
  absl::flat_hash_map<GrpcConnection*, std::unique_ptr<GrpcConnection>> all_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, GrpcConnection*> by_peer_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, GrpcConnection*> by_descriptor_ ABSL_GUARDED_BY(mutex_);
  // Peers of the last connections that were closed: gRPC may still come up with calls of theirs.
  std::deque<std::string> gone_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<OpenCall*> calls_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::unique_ptr<CallSource>> sources_ ABSL_GUARDED_BY(mutex_);
  ShutAddresses shut_ ABSL_GUARDED_BY(mutex_);
  bool in_flood_ ABSL_GUARDED_BY(mutex_) = false;  // Too many calls were arriving at the last tick.
};

// One call: on whose connection it is, and what it waits for. Belongs to its call, whose context
// must live until End.
class OpenCall {
 public:
  OpenCall(Connections& connections, grpc::CallbackServerContext& context);
  // REQUIRES: ended.
  ~OpenCall() = default;
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

  // The address of the client's connection.
  const std::string& address() const { return address_; }
  // The connection is closed, or will be at once: the call is not worth beginning.
  bool lost() const { return lost_; }

  // A message is expected, and must come in time.
  void AwaitMessage();
  // Notes that the whole message came, as so many bytes on the wire.
  void MessageCame(uint64_t bytes);
  // Notes that no message comes any more.
  void NoMessage();
  // A message of so many bytes is being written, and must be taken in time.
  void AwaitReader(uint64_t bytes);
  void Taken();

  // Sets the memory taken by the call's requests and answers.
  void SetHeld(uint64_t bytes) { held_.store(bytes, std::memory_order_relaxed); }

  // The library is done with the call.
  void End() { connections_.End(*this); }

 private:
  friend class Connections;

  // Whether the call began a moment ago: a client that leaves it now leaves it soon.
  bool Soon() const;
  // Whether the call is over time at `now` (nanoseconds).
  bool Late(int64_t now, const ConnectionRules& rules) const;

  Connections& connections_;
  grpc::CallbackServerContext& context_;
  std::string address_;
  std::string unit_;                      // GrpcConnection::unit of its connection.
  GrpcConnection* connection_ = nullptr;  // Null: unknown.
  bool lost_ = false;
  const bool left_;      // The client left before the call began.
  bool vain_;            // Counted as left soon; guarded by the table's lock once others see it.
  const int64_t begin_;  // Nanoseconds, as below.
  std::atomic<uint64_t> held_{0};
  std::atomic<int64_t> reading_since_{0};  // Nanoseconds of SteadyNow; 0 = no message is awaited.
  std::atomic<int64_t> writing_until_{0};  // Nanoseconds of SteadyNow; 0 = nothing is written.
  std::atomic<uint64_t> came_before_{0};   // Bytes of the connection when reading began.
};

}  // namespace longview::server
