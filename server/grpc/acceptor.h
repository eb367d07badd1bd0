// Accepts the connections of the gRPC port and hands them to gRPC.
//
// gRPC 1.51 accepts by itself only until it runs out of descriptors once (CVE-2023-4785), and
// without any limit. Here connections are counted before gRPC sees them.
#pragma once

#include <grpcpp/server_builder.h>

#include <atomic>
#include <memory>
#include <thread>

#include "server/grpc/connections.h"
#include "server/grpc/listening_sockets.h"

namespace longview::server {

// One thread: accepts, learns of ends, and gives the table its ticks. Start, StopListening and the
// destructor belong to one thread.
class Acceptor {
 public:
  explicit Acceptor(ConnectionRules rules);
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
  void HandOver(int descriptor, int listener);
  void Watch(int descriptor, uint32_t events) const;
  void Wake() const;

  const int epoll_;
  const int wake_;
  Connections connections_;
  ListeningSockets sockets_;  // Of the thread while it listens.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate_;
  std::atomic<bool> listening_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> closed_{true};
  std::thread thread_;
};

}  // namespace longview::server
