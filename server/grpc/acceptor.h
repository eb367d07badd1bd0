// Accepts the connections of the gRPC port and hands them to gRPC.
//
// gRPC 1.51 accepts by itself only until it runs out of descriptors once (CVE-2023-4785), and
// without any limit. Here connections are counted before gRPC sees them.
#pragma once

#include <grpcpp/server_builder.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/grpc/connections.h"
#include "server/grpc/listening_sockets.h"
#include "server/grpc/owned_descriptor.h"

namespace longview::server {

// One thread: accepts, learns of ends, and gives the table its ticks. Start, StopListening and the
// destructor belong to one thread.
class Acceptor {
 public:
  // `header_timeout` above 0: connections of trusted proxies begin with a header of the PROXY
  // protocol, which must be there in time, and are closed without.
  explicit Acceptor(ConnectionRules rules, absl::Duration header_timeout = absl::ZeroDuration());
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // `gate` is gRPC's, of a server that has started.
  void Start(ListeningSockets sockets,
             std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate);

  // Closes the port; no connection is handed over any more. Ticks go on.
  void StopListening();

  Connections& connections() { return connections_; }

 private:
  void Run();
  void Accept(int listener);
  // A connection was accepted.
  void Begin(OwnedDescriptor& accepted, int listener);
  // The beginning of a proxy's connection came, or its end.
  void ReadHeader(int descriptor);
  // Ends those whose header is late; returns when the next will be.
  absl::Time EndLateHeaders(absl::Time now);
  // `address`: the client's.
  void HandOver(OwnedDescriptor& accepted, int listener, std::string peer, std::string address);
  void Unwatch(int descriptor) const;
  void Watch(int descriptor, uint32_t events) const;
  void Wake() const;

  const int epoll_;
  const int wake_;
  Connections connections_;
  const TrustedProxies proxies_;
  const absl::Duration header_timeout_;
  const ConnectionEnds ends_;
  ListeningSockets sockets_;  // Used by the thread alone while it listens.
  // Connections whose header has not come, by descriptor; the thread's.
  struct Unnamed {
    int listener = -1;
    std::string peer;
    std::string address;  // The proxy's.
    absl::Time deadline;
  };
  absl::flat_hash_map<int, Unnamed> unnamed_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate_;
  std::atomic<bool> listening_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> closed_{true};
  std::thread thread_;
};

}  // namespace longview::server
