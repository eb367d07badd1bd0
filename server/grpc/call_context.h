// Reads the metadata that a gRPC call brings besides its message.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <string_view>

#include "server/call.h"
#include "server/security/client_address.h"

namespace longview::server {

// The metadata that brings a request id, and takes it back.
inline constexpr char kRequestIdKey[] = "x-request-id";

// Deadline, request id, trace and client of a call that arrives now over a connection from
// `address`. `method`: static storage.
CallInfo ReadCallInfo(const grpc::CallbackServerContext& context, std::string_view method,
                      const TrustedProxies& proxies, const std::string& address);

// The value of a metadata key; "" if it is absent.
std::string_view Metadata(const grpc::ServerContextBase& context, const char* key);

// "ipv4:10.0.0.1:443" -> "10.0.0.1", "ipv6:%5B::1%5D:443" -> "::1", "unix:/x" -> "unix".
std::string PeerAddress(std::string_view peer);

}  // namespace longview::server
