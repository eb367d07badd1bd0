// Opens a gRPC channel to a Longview server.
//
// Thread-safe: a channel may be shared by any number of clients and threads.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace longview::client {

struct ChannelOptions {
  std::string server = "localhost:9000";  // host:port.
  bool tls = false;
  std::string ca_file = "";  // PEM with the roots to trust; empty = the system's. Implies tls.
  // PEM file of a client certificate, where the server asks for one (mutual TLS); implies tls.
  std::string cert_file = "";
  std::string key_file = "";  // PEM file of its key; set if and only if cert_file is.
  // Limit of one request and of one answer, in bytes; the server has its own.
  int max_message_bytes = 64 << 20;
};

// Does not connect: the first call does. INVALID_ARGUMENT if a file cannot be read, or a
// certificate comes without its key.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ChannelOptions& options);

// Connects, within seconds at most; false if that was not enough.
bool WaitUntilConnected(grpc::Channel& channel, double seconds);

}  // namespace longview::client
