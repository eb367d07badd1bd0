// Settings of the gRPC library for the whole process: the lines that it writes itself, and how much
// of a connection it reads at once.
#pragma once

#include <string>
#include <string_view>

#include "server/log/log.h"

namespace longview::server {

// From here on the library's errors are lines like the server's own, and no thread of the library
// waits for a stderr that nobody reads: what it does not take at once is lost. Handshakes that fail
// are of level info, one a second at most. For the whole process; before any use of gRPC.
void FormatGrpcLog(LogFormat format);

// A thousand calls, if all are headers: the library takes apart what it has read before it comes
// round to anything else, also when the connection has been closed meanwhile.
inline constexpr int kMaxReadBytes = 32 * 1024;

// Makes the library heed GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE: with its experiment "tcp_read_chunks",
// which gRPC 1.51 has on, it reads 64 KiB at once, whatever the argument says. Sets the environment
// variable GRPC_EXPERIMENTS, which the library reads once. Call before any thread exists and before
// any use of gRPC.
void LimitGrpcReads();

// The value of GRPC_EXPERIMENTS for that: `experiments`, and this one off if they do not name it.
std::string WithoutReadChunks(std::string_view experiments);

}  // namespace longview::server
