#include "server/grpc/connections.h"

#include <fcntl.h>
#include <grpc/grpc.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/grpc/call_context.h"
#include "server/grpc/owned_descriptor.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {
namespace {

// Bytes beside messages: headers of a call, frames of a message, acknowledgements of the answers
// that a client reads.
constexpr uint64_t kBytesPerCall = 512;
constexpr uint64_t kBytesPerMessage = 64;
constexpr uint64_t kMessageBytesPerFrameByte = 64;

// Bytes that may come on a connection before its next call has begun: those of headers, and of a
// message as long as no thread has come round to the call.
constexpr uint64_t kMostBeforeCall = uint64_t{4} << 20;

// Closed connections that are remembered, for calls of theirs that gRPC brings up afterwards.
constexpr size_t kMostGone = 64;
constexpr size_t kDropBytes = size_t{1} << 20;
// A call that is left within this time of its beginning counts against most_vain_calls.
constexpr int64_t kSoonNanos = 2'000'000'000;
// gRPC reads more than this at once; an ordinary request is less.
constexpr uint64_t kLeastFlood = 16 * 1024;
// A flood of calls is read no faster than this allows.
constexpr absl::Duration kArrivalPause = absl::Microseconds(50);
// A connection with so many calls counts as one that floods before one with a few large messages.
constexpr int kManyCalls = 256;

constexpr char kTooLate[] = "the request's message did not come in time";
constexpr char kNotTaken[] = "the answer was not taken in time";

uint64_t BytesReceived(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_bytes_received;
}

// Bytes that gRPC has taken off the socket.
uint64_t BytesTaken(int descriptor) {
  int waiting = 0;
  if (ioctl(descriptor, FIONREAD, &waiting) != 0) return 0;
  const uint64_t came = BytesReceived(descriptor);
  return came - std::min(came, static_cast<uint64_t>(waiting));
}

// Drops what came and gRPC has not read: it would read megabytes of a connection that is over.
void Drop(int descriptor) {
  while (recv(descriptor, nullptr, kDropBytes, MSG_TRUNC | MSG_DONTWAIT) > 0) {
  }
}

// Bytes that an address has sent since too many calls began to arrive, and the connection that is
// most likely to have sent those calls.
struct Sent {
  uint64_t bytes = 0;
  GrpcConnection* worst = nullptr;
  std::pair<bool, uint64_t> rank = {false, 0};  // Whether `worst` is likely, and its bytes.
};

// Now, in nanoseconds, on the clock that Tick is given the time of.
int64_t SteadyNanos() { return absl::ToUnixNanos(SteadyNow()); }

void Settle(GrpcConnection* connection, uint64_t bytes) {
  if (connection != nullptr) connection->settled.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

Connections::Connections(ConnectionRules rules, absl::AnyInvocable<void()> wake)
    : rules_(std::move(rules)),
      wake_(std::move(wake)),
      ledger_(rules_.limits),
      shut_(rules_.shut_out) {}

Connections::~Connections() {
  absl::MutexLock lock(&mutex_);
  for (const auto& [descriptor, connection] : by_descriptor_) {
    connection->entry.reset();
    close(descriptor);
  }
}

int Connections::Admit(int descriptor, std::string peer, std::string address) {
  const absl::Time now = SteadyNow();
  std::string unit = FairnessUnit(address);
  if (Refuses(unit, address, now)) return -1;
  // The entry, which shuts it down, goes before it is closed.
  OwnedDescriptor owned(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  const int second = owned.get();
  if (second < 0) return -1;
  const bool proxy = rules_.proxies.Trusts(address);
  using PerAddress = ConnectionLedger::PerAddress;
  auto entry = ledger_.Admit(
      unit,
      [this, second, address] {
        shutdown(second, SHUT_RDWR);
        Tell(EndCause::kRoom, address);
      },
      proxy ? PerAddress::kUnlimited : PerAddress::kLimited);
  if (entry == nullptr) {
    Tell(EndCause::kLimit, address);
    return -1;
  }
  auto connection = std::make_unique<GrpcConnection>();
  connection->peer = std::move(peer);
  connection->address = std::move(address);
  connection->descriptor = second;
  connection->entry = std::move(entry);
  connection->since = now;
  connection->unit = std::move(unit);
  connection->source_name = proxy ? connection->peer : connection->unit;
  {
    absl::MutexLock lock(&mutex_);
    // Steps that may throw bad_alloc come first: the tables have all of a connection or nothing.
    by_descriptor_.reserve(by_descriptor_.size() + 1);
    all_.reserve(all_.size() + 1);
    auto fresh = std::make_unique<CallSource>();
    std::unique_ptr<CallSource>& source = sources_[connection->source_name];
    if (source == nullptr) source = std::move(fresh);
    GrpcConnection* const place = connection.get();
    by_peer_[place->peer] = place;
    ++source->connections;
    connection->source = source.get();
    by_descriptor_[second] = place;
    all_[place] = std::move(connection);
    owned.Release();
  }
  if (resting_.exchange(false)) wake_();
  return second;
}

void Connections::Tell(EndCause cause, const std::string& address) const {
  if (rules_.ends) rules_.ends(cause, address);
}

void Connections::Cut(GrpcConnection& connection, EndCause cause) {
  if (std::exchange(connection.cut, true) || connection.descriptor < 0) return;
  shutdown(connection.descriptor, SHUT_RDWR);
  Drop(connection.descriptor);
  Tell(cause, connection.address);
}

void Connections::ShutOut(GrpcConnection& culprit, EndCause cause) {
  Cut(culprit, cause);
  if (culprit.source_name != culprit.unit) return;  // A proxy carries other clients, too.
  const absl::Time now = SteadyNow();
  if (!shut_.Shut(culprit.unit, cause, now)) return;
  for (const auto& [descriptor, connection] : by_descriptor_) {
    if (connection->source != culprit.source) continue;
    if (now - connection->since < rules_.shut_out) Cut(*connection, cause);
  }
}

bool Connections::Refuses(const std::string& unit, const std::string& address, absl::Time now) {
  std::optional<EndCause> cause;
  {
    absl::MutexLock lock(&mutex_);
    cause = shut_.Find(unit, now);
  }
  if (cause) Tell(*cause, address);
  return cause.has_value();
}

void Connections::Closed(int descriptor) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_descriptor_.find(descriptor);
  if (found == by_descriptor_.end()) return;
  GrpcConnection* const connection = found->second;
  by_descriptor_.erase(found);
  const auto named = by_peer_.find(connection->peer);
  if (named != by_peer_.end() && named->second == connection) by_peer_.erase(named);
  connection->entry.reset();
  Drop(descriptor);
  close(std::exchange(connection->descriptor, -1));
  gone_.push_back(connection->peer);
  if (gone_.size() > kMostGone) gone_.pop_front();
  if (connection->calls == 0) Forget(connection);
}

void Connections::Forget(GrpcConnection* connection) {
  if (--connection->source->connections == 0) sources_.erase(connection->source_name);
  all_.erase(connection);
}

void Connections::Begin(OpenCall& call, const std::string& peer) {
  Arrived();
  {
    absl::MutexLock lock(&mutex_);
    calls_.insert(&call);
    const auto found = by_peer_.find(peer);
    if (found == by_peer_.end()) {
      call.lost_ = std::find(gone_.begin(), gone_.end(), peer) != gone_.end();
      call.unit_ = FairnessUnit(call.address_);
    } else {
      GrpcConnection* const connection = found->second;
      call.connection_ = connection;
      call.address_ = connection->address;
      call.unit_ = connection->unit;
      if (++connection->calls == 1) connection->rebase = true;
      connection->entry->BeginCall();
      Settle(connection, kBytesPerCall);
      ++connection->begun;
      ++connection->source->calls;
      CheckCalls(*connection);
      if (call.vain_) CountVain(*connection);
      call.lost_ = connection->cut;
    }
  }
  if (resting_.exchange(false)) wake_();
}

void Connections::Leave(OpenCall& call) {
  absl::MutexLock lock(&mutex_);
  call.vain_ = true;
  if (call.connection_ != nullptr) CountVain(*call.connection_);
}

void Connections::End(OpenCall& call) {
  if (call.left_) left_.fetch_sub(1, std::memory_order_relaxed);
  absl::MutexLock lock(&mutex_);
  calls_.erase(&call);
  GrpcConnection* const connection = std::exchange(call.connection_, nullptr);
  if (connection == nullptr) return;
  if (!call.vain_ && call.context_.IsCancelled() && call.Soon()) CountVain(*connection);
  if (connection->entry != nullptr) connection->entry->EndCall();
  --connection->source->calls;
  if (--connection->calls == 0 && connection->descriptor < 0) Forget(connection);
}

absl::Duration Connections::Tick(absl::Time now) {
  std::vector<std::pair<grpc_call*, const char*>> late;
  uint64_t most = 0;  // Bytes of an address.
  bool flood = false;
  {
    absl::MutexLock lock(&mutex_);
    flood = StopFlood();
    CloseEndlessHeads();
    if (calls_.empty() && !flood) {
      resting_ = true;
      return by_descriptor_.empty() ? absl::InfiniteDuration() : kIdleTick;
    }
    CountHalfSent();
    most = CloseHogs();
    const int64_t nanos = absl::ToUnixNanos(now);
    for (OpenCall* call : calls_) {
      if (!call->Late(nanos, rules_)) continue;
      grpc_call* const c_call = call->context_.c_call();
      grpc_call_ref(c_call);
      late.emplace_back(c_call, call->writing_until_.load() != 0 ? kNotTaken : kTooLate);
    }
  }
  // Cancelled without the lock: reactions of the calls may run inside, and take it.
  for (const auto& [call, why] : late) {
    grpc_call_cancel_with_status(call, GRPC_STATUS_DEADLINE_EXCEEDED, why, nullptr);
    grpc_call_unref(call);
  }
  return flood || most > rules_.most_bytes / 64 ? kShortTick : kTick;
}

void Connections::Arrive() {
  const int before = arriving_.fetch_add(1, std::memory_order_relaxed);
  if (before == rules_.most_arriving) wake_();
  // The thread that reads leaves the processor to Tick, which stops a flood, and to those that end
  // calls.
  if (before + left_.load(std::memory_order_relaxed) >= rules_.most_arriving) {
    absl::SleepFor(kArrivalPause);
  }
}

void Connections::CountVain(GrpcConnection& connection) {
  CallSource& source = *connection.source;
  const absl::Time now = SteadyNow();
  if (now - source.vain_since > absl::Seconds(1)) {
    source.vain_since = now;
    source.vain = 0;
  }
  if (++source.vain > rules_.most_vain_calls) ShutOut(connection, EndCause::kResets);
}

void Connections::CheckCalls(const GrpcConnection& newest) {
  if (newest.source->calls <= rules_.most_calls || newest.cut) return;
  GrpcConnection* busiest = nullptr;
  for (const auto& [descriptor, connection] : by_descriptor_) {
    if (connection->source != newest.source || connection->cut) continue;
    if (busiest == nullptr || connection->calls > busiest->calls) busiest = connection;
  }
  if (busiest != nullptr) ShutOut(*busiest, EndCause::kCalls);
}

bool Connections::StopFlood() {
  const bool before =
      std::exchange(in_flood_, arriving_.load(std::memory_order_relaxed) > rules_.most_arriving);
  if (!in_flood_) return false;
  absl::flat_hash_map<CallSource*, Sent> sources;
  for (const auto& [descriptor, connection] : by_descriptor_) {
    if (connection->cut) continue;
    const uint64_t taken = BytesTaken(descriptor);
    if (!before || connection->begun != connection->begun_in_flood) {
      connection->begun_in_flood = connection->begun;
      connection->taken_in_flood = taken;
      continue;
    }
    if (taken == connection->taken_in_flood) continue;
    const bool likely = connection->calls == 0 || connection->calls >= kManyCalls;
    const std::pair rank = {likely, taken - connection->taken_in_flood};
    Sent& sent = sources[connection->source];
    sent.bytes += rank.second;
    if (sent.worst != nullptr && rank <= sent.rank) continue;
    sent.worst = connection;
    sent.rank = rank;
  }
  GrpcConnection* worst = nullptr;
  std::pair<bool, uint64_t> most = {false, 0};
  for (const auto& [source, sent] : sources) {
    const std::pair rank = {sent.rank.first, sent.bytes};
    if (sent.bytes < kLeastFlood || rank <= most) continue;
    worst = sent.worst;
    most = rank;
  }
  if (worst != nullptr) ShutOut(*worst, EndCause::kFlood);
  return true;
}

void Connections::CloseEndlessHeads() {
  for (const auto& [descriptor, connection] : by_descriptor_) {
    if (connection->cut) continue;
    const bool before = std::exchange(connection->without_call, connection->calls == 0);
    if (!connection->without_call) continue;
    const uint64_t came = BytesReceived(descriptor);
    if (!before || connection->begun != connection->begun_without_call) {
      connection->base_without_call = came;
      connection->begun_without_call = connection->begun;
    } else if (came - connection->base_without_call > kMostBeforeCall) {
      Cut(*connection, EndCause::kBytes);
    }
  }
}

void Connections::CountHalfSent() {
  for (const auto& [descriptor, connection] : by_descriptor_) {
    if (connection->calls == 0) continue;
    const uint64_t came = BytesReceived(descriptor);
    connection->came.store(came, std::memory_order_relaxed);
    if (std::exchange(connection->rebase, false)) {
      connection->base = came;
      connection->settled = 0;
    }
    const uint64_t settled = connection->settled.load(std::memory_order_relaxed);
    const uint64_t since = came - connection->base;
    connection->half_sent = since > settled ? since - settled : 0;
    if (since <= settled) {
      // Bytes settled in advance do not hide later ones.
      connection->base = came;
      connection->settled.fetch_sub(settled, std::memory_order_relaxed);
    }
  }
}

uint64_t Connections::CloseHogs() {
  struct Share {
    uint64_t bytes = 0;
    std::vector<GrpcConnection*> senders;
  };
  absl::flat_hash_map<std::string, Share> shares;
  for (const auto& [descriptor, connection] : by_descriptor_) {
    if (connection->calls == 0 || connection->half_sent == 0) continue;
    Share& share = shares[connection->unit];
    share.bytes += connection->half_sent;
    share.senders.push_back(connection);
  }
  if (shares.empty()) return 0;
  for (const OpenCall* call : calls_) {
    const auto found = shares.find(call->unit_);
    if (found != shares.end()) found->second.bytes += call->held_.load(std::memory_order_relaxed);
  }
  uint64_t most = 0;
  for (auto& [unit, share] : shares) {
    most = std::max(most, share.bytes);
    if (share.bytes <= rules_.most_bytes) continue;
    std::sort(share.senders.begin(), share.senders.end(),
              [](const GrpcConnection* a, const GrpcConnection* b) {
                return a->half_sent > b->half_sent;
              });
    for (GrpcConnection* sender : share.senders) {
      if (share.bytes <= rules_.most_bytes) break;
      Cut(*sender, EndCause::kBytes);
      share.bytes -= sender->half_sent;
    }
  }
  return most;
}

OpenCall::OpenCall(Connections& connections, grpc::CallbackServerContext& context)
    : connections_(connections),
      context_(context),
      left_(context.IsCancelled()),
      vain_(left_),
      begin_(SteadyNanos()) {
  const std::string peer = context.peer();
  address_ = PeerAddress(peer);
  if (left_) connections.left_.fetch_add(1, std::memory_order_relaxed);
  // Last, since other threads see the call from here on.
  connections.Begin(*this, peer);
}

void OpenCall::AwaitMessage() {
  if (connection_ != nullptr) came_before_ = connection_->came.load(std::memory_order_relaxed);
  reading_since_.store(SteadyNanos(), std::memory_order_relaxed);
}

void OpenCall::NoMessage() {
  const bool awaited = reading_since_.exchange(0, std::memory_order_relaxed) != 0;
  if (awaited && !left_ && Soon()) connections_.Leave(*this);
}

void OpenCall::MessageCame(uint64_t bytes) {
  reading_since_.store(0, std::memory_order_relaxed);
  Settle(connection_, bytes + bytes / kMessageBytesPerFrameByte + kBytesPerMessage);
}

void OpenCall::AwaitReader(uint64_t bytes) {
  const absl::Duration time =
      connections_.rules_.transfer_grace +
      absl::Seconds(static_cast<double>(bytes) / connections_.rules_.min_rate);
  writing_until_.store(SteadyNanos() + absl::ToInt64Nanoseconds(time), std::memory_order_relaxed);
}

void OpenCall::Taken() {
  writing_until_.store(0, std::memory_order_relaxed);
  Settle(connection_, kBytesPerMessage);
}

bool OpenCall::Soon() const { return SteadyNanos() - begin_ < kSoonNanos; }

bool OpenCall::Late(int64_t now, const ConnectionRules& rules) const {
  const int64_t until = writing_until_.load(std::memory_order_relaxed);
  if (until != 0) return now > until;
  const int64_t since = reading_since_.load(std::memory_order_relaxed);
  if (since == 0) return false;
  const absl::Duration over = absl::Nanoseconds(now - since) - rules.transfer_grace;
  if (over <= absl::ZeroDuration()) return false;
  const uint64_t came =
      connection_ == nullptr ? 0 : connection_->came.load(std::memory_order_relaxed) - came_before_;
  return static_cast<double>(came) < rules.min_rate * absl::ToDoubleSeconds(over);
}

}  // namespace longview::server
